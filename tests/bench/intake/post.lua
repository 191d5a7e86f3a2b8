-- One receipt in a form, as Twilio sends it; every request has an id of its own.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
local run = os.getenv("RUN") or "0"
local number = 0

function request()
    number = number + 1
    local id = "SM2f3a7e9c1b5d4f60a8c2" .. run .. number
    return wrk.format(nil, "/dlr/sms?mid=m-" .. run .. "-" .. number, nil,
        "SmsSid=" .. id .. "&SmsStatus=delivered&MessageStatus=delivered&To=%2B15558675310&MessageSid=" .. id ..
        "&AccountSid=AC2f3a7e9c1b5d4f60a8c2e4d6b8f0a1b2c&From=%2B15017122661&ApiVersion=2010-04-01")
end
