// A careful consumer in Go: franz-go and pgx, one UPDATE … FROM unnest per batch, eight batches in flight, offsets committed
// afterwards. At least once, no counters, nothing parked.
//
//	consumer BROKERS TOPIC DSN EVENTS IN_FLIGHT POLLED_RECORDS
//
// Writes "ready" when it has joined, begins at a line on stdin, ends when EVENTS events are committed.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/valyala/fastjson"
)

var codes = map[string]int16{"IN_GTW": 200, "SENT": 300, "FAILED": 440, "DELIVERED": 600, "OPENED": 700, "CLICKED": 800}

const update = `UPDATE receiptd.message_inbox m
SET prev_status = m.status, status = e.top, status_at = e.at, updated_at = now()
FROM unnest($1::text[], $2::int2[], $3::timestamptz[]) AS e (id, top, at)
WHERE m.message_id = e.id AND e.top > m.status`

const batchEvents = 4000

type event struct {
	top int16
	at  time.Time
}

type batch struct {
	records []*kgo.Record
	events  int
	done    chan struct{}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

// Highest status per message, in the order of the ids: the order in which every rival locks.
func fold(parser *fastjson.Parser, b batch) ([]string, []int16, []time.Time) {
	messages := make(map[string]event, b.events)
	for _, record := range b.records {
		value, err := parser.ParseBytes(record.Value)
		check(err)
		list := []*fastjson.Value{value}
		if value.Type() == fastjson.TypeArray {
			list = value.GetArray()
		}
		for _, item := range list {
			id := string(item.GetStringBytes("message_id"))
			top := codes[string(item.GetStringBytes("status"))]
			if known, there := messages[id]; there && known.top >= top {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, string(item.GetStringBytes("at")))
			check(err)
			messages[id] = event{top, at}
		}
	}
	ids := make([]string, 0, len(messages))
	for id := range messages {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	tops, ats := make([]int16, len(ids)), make([]time.Time, len(ids))
	for i, id := range ids {
		tops[i], ats[i] = messages[id].top, messages[id].at
	}
	return ids, tops, ats
}

func count(value []byte) int {
	n := 0
	for _, c := range value {
		if c == '{' {
			n++
		}
	}
	return n
}

func main() {
	brokers, topic, dsn := os.Args[1], os.Args[2], os.Args[3]
	goal, err := strconv.ParseInt(os.Args[4], 10, 64)
	check(err)
	inFlight, err := strconv.Atoi(os.Args[5])
	check(err)
	polled, err := strconv.Atoi(os.Args[6])
	check(err)
	ctx := context.Background()

	config, err := pgxpool.ParseConfig(dsn)
	check(err)
	config.MaxConns, config.MinConns = int32(inFlight), int32(inFlight)
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	config.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	config.ConnConfig.RuntimeParams["application_name"] = "bench-rival"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	check(err)
	check(pool.Ping(ctx))

	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.ConsumerGroup("go-"+strconv.FormatInt(time.Now().UnixNano(), 36)),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitMarks(),
		kgo.FetchMaxPartitionBytes(2<<20), kgo.FetchMaxBytes(16<<20))
	check(err)
	fmt.Println("ready")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	check(err)

	work, order := make(chan batch), make(chan batch, inFlight)
	// Offsets move in the order of the batches: a later one that is done first does not count yet.
	marked := make(chan struct{})
	go func() {
		for b := range order {
			<-b.done
			client.MarkCommitRecords(b.records...)
		}
		close(marked)
	}()
	var done atomic.Int64
	var workers sync.WaitGroup
	var start time.Time
	for i := 0; i < inFlight; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			var parser fastjson.Parser
			for b := range work {
				ids, tops, ats := fold(&parser, b)
				_, err := pool.Exec(ctx, update, ids, tops, ats)
				check(err)
				done.Add(int64(b.events))
				close(b.done)
			}
		}()
	}
	var b batch
	for seen := int64(0); seen < goal; {
		fetches := client.PollRecords(ctx, polled)
		check(fetches.Err0())
		if start.IsZero() {
			start = time.Now()
		}
		for iterator := fetches.RecordIter(); !iterator.Done(); {
			record := iterator.Next()
			events := count(record.Value)
			seen += int64(events)
			b.records, b.events = append(b.records, record), b.events+events
			if b.events >= batchEvents || seen >= goal {
				b.done = make(chan struct{})
				order <- b
				work <- b
				b = batch{}
			}
		}
	}
	close(work)
	workers.Wait()
	close(order)
	<-marked
	seconds := time.Since(start).Seconds()
	check(client.CommitMarkedOffsets(ctx))
	fmt.Printf("{\"seconds\": %f, \"events\": %d}\n", seconds, done.Load())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	client.Close()
	pool.Close()
}
