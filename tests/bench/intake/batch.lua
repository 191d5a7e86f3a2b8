-- A thousand events in a JSON array, as SendGrid sends them.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local requests = {}

function init()
    for body = 1, 8 do
        local events = {}
        for event = 1, 1000 do
            local id = body .. "-" .. event
            events[event] = '{"email":"someone@example.com","timestamp":1769000000,"smtp-id":"<14c5d75ce93.dfd.64b469@example>",' ..
                '"event":"delivered","category":["news"],"sg_event_id":"ZGVsaXZlcmVkLTAtMTIzNDU2Nzg5LXh' .. id ..
                '","sg_message_id":"14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.' .. id ..
                '","message_id":"m-' .. id .. '","response":"250 OK"}'
        end
        requests[body] = wrk.format(nil, "/dlr/mail", nil, "[" .. table.concat(events, ",") .. "]")
    end
end

local number = 0
function request()
    number = number % 8 + 1
    return requests[number]
end
