/* The protocol of positions, lanes and batches, for Spin. docs/model.md says what is modelled and what is not.
 *
 * One step (a d_step) is one event of one process: an answer is taken in, a batch is sent, a flight is executed, a fault
 * strikes. A flight is atomic: PostgreSQL is trusted, the protocol around it is not. A transaction has two flights, and
 * holds its rows of consumer_progress from the first one to its end. "F4" and the like are the
 * counterexamples for which a rule was made, R3, R8 and the like those that were seen on PostgreSQL. Names in brackets are
 * functions and fields of src/core and files of sql/.
 *
 * Sizes, the content of the log, the number of faults and the mutant come as -D from scripts/model. A mutant (M_…) leaves
 * out or twists one rule, and must fail.
 *
 * Sets of offsets of one partition are bags: two bits for each offset, so that a record which is there twice can be seen.
 */

#ifndef INSTANCES
#define INSTANCES 1
#endif
#ifndef PARTITIONS
#define PARTITIONS 1
#endif
#ifndef LANES
#define LANES 2                 /* most lanes of a layout, and the number of messages: message m is in lane m mod width */
#endif
#ifndef OFFSETS
#define OFFSETS 2               /* records 0 … OFFSETS-1, the same in every partition; at most 4 */
#endif

/* ---- the log: which records hold an event of message 0, of message 1, or cannot be decoded; which offsets do not exist
 * (compaction, aborted transactions); which events of message 0 come before the platform has inserted its row ---- */

#define each(offset) (1 << (2 * (offset)))
#define below(offset) (each(offset) - 1)
#define whole(set) ((set) * 3)  /* a set has one of the two bits of each offset */

#ifndef EVENTS0
#define EVENTS0 85              /* all four */
#endif
#ifndef EVENTS1
#define EVENTS1 85
#endif
#ifndef UNDECODABLE
#define UNDECODABLE 0
#endif
#ifndef HOLES
#define HOLES 0
#endif
#ifndef LATE
#define LATE 0
#endif
#define events(message) (((message) == 0 -> EVENTS0 : EVENTS1) & below(OFFSETS) & ~HOLES & ~UNDECODABLE)
#define exists(offset) ((HOLES & each(offset)) == 0)

/* ---- how often each fault may strike; when none is left, healthy steps alone must reach the good end ---- */

#ifndef CRASHES
#define CRASHES 0               /* the database loses a suffix of its commits (asynchronous commit, fail-over) */
#endif
#ifndef LOSSES
#define LOSSES 0                /* a lane's connection is lost; what is in flight commits, does not, or does so later */
#endif
#ifndef REBALANCES
#define REBALANCES 0            /* the group gives a partition to another instance; both notice later */
#endif
#ifndef LOSTSEEKS
#define LOSTSEEKS 0
#endif
#ifndef REDELIVERIES
#define REDELIVERIES 0
#endif
#ifndef KILLS
#define KILLS 0                 /* an instance dies and starts again with nothing in memory */
#endif
#ifndef RETRIES
#define RETRIES 0               /* deadlock, serialization failure, lock time-out: rolled back, connection alive */
#endif
#ifndef LOOKS
#define LOOKS 0                 /* an idle lane verifies positions that are right */
#endif
#ifndef STOPS
#define STOPS 0                 /* the server ends a session that is idle in its transaction: rolled back, connection gone */
#endif
#ifndef RELANES
#define RELANES 0               /* an operator changes what is pinned, from layout FIRST to LAST */
#endif
#ifndef FIRST
#define FIRST LANES
#endif
#ifndef LAST
#define LAST FIRST
#endif
#ifndef BOOTED
#define BOOTED PARTITIONS       /* partitions that have rows at the start */
#endif

byte crashes = CRASHES, losses = LOSSES, rebalances = REBALANCES, lostseeks = LOSTSEEKS, redeliveries = REDELIVERIES;
byte kills = KILLS, retries = RETRIES, looks = LOOKS, relanes = RELANES, stops = STOPS;

/* ---- PostgreSQL: what is committed, and what of it would survive a crash ---- */

typedef Tables {
    byte layout;                    /* consumer_topic: all that is pinned; here also the number of lanes */
    byte generation;                /* the same in consumer_topic and in all rows of consumer_progress */
    byte partitions;                /* consumer_topic.partitions: those below have rows */
    byte next[PARTITIONS * LANES];  /* consumer_progress.next_offset */
    byte done[PARTITIONS * LANES];  /* by message: events that were applied and counted, or expired */
    byte parked[PARTITIONS];        /* parked_event, all of message 0 */
    byte letters[PARTITIONS];       /* dead_letter */
    bit born                        /* message 0 is in message_inbox */
}

Tables now, disk;

/* A transaction between lane_step and its result. While a lane reads its positions, the answer: rows in `to`. */
typedef Transaction {
    byte kind;
    byte lane, width, maker;        /* maker: the instance, for M_badlane only */
    bit moves[PARTITIONS];          /* rows that the fence names, or that were asked for */
    bit old[PARTITIONS];            /* the epoch of this part has ended; a flag stands for comparing numbers */
    byte from[PARTITIONS], to[PARTITIONS], generation[PARTITIONS];
    byte batch[PARTITIONS];         /* records */
    bit seen                        /* between the flights: whether decide has found message 0 */
}
#define NONE 0
#define ANSWER 1
#define APPLY 2
#define WAKE 3
#define EXPIRE 4

Transaction orphan;                 /* its connection is gone, its backend lives */

/* ---- the instances ---- */

#define UNSYNCED 0                  /* LANE_DOWN too: a new connection has nothing else to do than to read positions */
#define READING 1
#define READY 2
#define IN_FLIGHT 3                 /* sent, not executed yet */
#define HALFWAY 4                   /* some mutants: in the middle of a transaction */
#define OPEN 5                      /* the first flight is executed: rows are locked, the client counts */
#define WRITING 6                   /* the second flight is sent */
#define COMMITTED 7                 /* the result is on its way */
#define FENCED 8

typedef Lane {                      /* struct lane, struct lane_position */
    byte state;
    byte expected[PARTITIONS], accepted[PARTITIONS];
    byte queue[PARTITIONS];         /* records, without those in flight */
    Transaction sent
}

#define IDLE 0
#define PINNED 1                    /* M_twolooks: pins are read, rows are not */
#define READ 2                      /* rows are read, the engine does not have them yet (src/core/assignment.c) */
#define BOOTING 3                   /* there were no rows at the reading */
#define ASSIGNED 4

typedef Slot {                      /* struct slot: a partition in an instance, and librdkafka's view of it */
    byte state;
    byte generation;
    byte position;                  /* next offset that is expected to be delivered */
    byte fetch;                     /* next offset that will be delivered */
    byte seek;                      /* a seek to offset seek - 1 is on its way; 0: none */
    bit rewinding;
    byte rewind_to, rewind_from     /* the latter for M_rewindbelow only */
}

Lane lanes[INSTANCES * LANES];
Slot slots[INSTANCES * PARTITIONS];
byte width[INSTANCES];              /* layout that the instance was started with */
byte configured;                    /* layout that it would be started with now */
byte owner[PARTITIONS];             /* whom the group has given the partition */

#define LANE lanes[i * LANES + l]
#define SLOT slots[i * PARTITIONS + p]

/* Rows of consumer_progress that a transaction holds, which is in OPEN, WRITING, or an orphan. */
bit locked[PARTITIONS * LANES];

/* What is chosen at the beginning of a step that can end in several ways; 0 between steps. */
byte choice;

/* Scratch, not part of the state: written before it is read in every step. */
hidden byte a, b, good, half, again, k, l, m, p;

/* Which lane writes the letter of an undecodable record: a function of the position, never of the instance (F14). */
#ifdef M_badlane
#define letter_lane(instance, layout) ((instance) % (layout))
#else
#define letter_lane(instance, layout) 0
#endif

/* What a step says when a trail is replayed; scripts/model --trail shows only that. */
#define partition_says(text) printf("instance %d, partition %d: ", i, part); printf(text)
#define lane_says(text) printf("instance %d, lane %d: ", i, lane); printf(text)

#define for_each_partition p = 0; do :: p == PARTITIONS -> break :: else ->
#define next_partition p++ od; skip
#define for_each_lane l = 0; do :: l == width[i] -> break :: else ->
#define next_lane l++ od; skip

/* ==== what must hold ==== */

#define wrong(text) printf(text); assert(false)

/* After every commit. Events, parked rows and position change together and go back together, so the position says exactly
 * which events are settled, each once, in every state that the tables ever have. */
inline check_tables() {
    for_each_partition
        m = 0;
        do
        :: m == LANES -> break
        :: else ->
           a = now.done[p * LANES + m] + (m == 0 -> now.parked[p] : 0);
           b = (p >= now.partitions -> 0 : events(m) & below(now.next[p * LANES + m % now.layout]));
           if
           :: (a >> 1) & 85 -> wrong("wrong: an event is settled twice\n")
#ifndef WEAK    /* which is for mutants that would fail here at once: they shall show what comes of it */
           :: b & ~a -> wrong("wrong: the position has passed an event that is not settled\n")
           :: a & ~b & 85 -> wrong("wrong: an event is settled that the position has not passed\n")
#endif
           :: else -> skip
           fi;
           m++
        od;
#if UNDECODABLE != 0
        a = OFFSETS;                /* all lanes have passed this */
        m = 0;
        do
        :: m == now.layout -> break
        :: else -> a = (now.next[p * LANES + m] < a -> now.next[p * LANES + m] : a); m++
        od;
        if
        :: now.letters[p] & ~UNDECODABLE -> wrong("wrong: an undecodable record has two letters\n")
        :: UNDECODABLE & below(a) & ~now.letters[p] -> wrong("wrong: an undecodable record has no letter\n")
        :: else -> skip
        fi;
#endif
    next_partition
}

/* The good end: all is settled, nothing waits, every position is at the end of the log. */
inline check_end() {
    good = (now.partitions == PARTITIONS);
    for_each_partition
        m = 0;
        do
        :: m == LANES -> break
        :: else ->
           good = good && now.done[p * LANES + m] == events(m);
           good = good && (now.next[p * LANES + m % now.layout] == OFFSETS || !exists(OFFSETS - 1));
           m++
        od;
        good = good && now.parked[p] == 0 && now.letters[p] == UNDECODABLE;
    next_partition;
    if
    :: good -> skip
    :: else -> wrong("wrong: it comes to rest before everything is settled\n")
    fi
}

/* ==== PostgreSQL ==== */

inline copy_tables(target, source) {
    target.layout = source.layout;
    target.generation = source.generation;
    target.partitions = source.partitions;
    target.born = source.born;
    for_each_partition
        target.parked[p] = source.parked[p];
        target.letters[p] = source.letters[p];
        m = 0;
        do
        :: m == LANES -> break
        :: else ->
           target.next[p * LANES + m] = source.next[p * LANES + m];
           target.done[p * LANES + m] = source.done[p * LANES + m];
           m++
        od;
    next_partition
}

/* Choice 1: the WAL is flushed up to here before the next commit; 2: it is not. Nothing reads the disk after the last
 * crash. */
#define flushed choice = 1
#if CRASHES > 0
#define flushed_or_not if :: choice = 1 :: crashes > 0 -> choice = 2 fi
#else
#define flushed_or_not flushed
#endif
inline committed() {
    check_tables();
    if
    :: choice == 1 && crashes > 0 -> copy_tables(disk, now)
    :: else -> skip
    fi
}

/* sql/lane/fence.sql: all rows are where the batch was made for, in the same generation; sets `good`. */
inline fence(tx) {
    good = 1;
    for_each_partition
        if
        :: tx.moves[p] ->
           good = good && p < now.partitions && tx.lane < now.layout;
#ifndef M_nofence
           good = good && now.next[p * LANES + tx.lane] == tx.from[p];
#endif
#ifndef M_nogeneration
           good = good && tx.generation[p] == now.generation;
#endif
        :: else -> skip
        fi;
    next_partition
#ifdef M_wakenofence
    ;good = good || tx.kind == WAKE
#endif
}

inline move_positions(tx) {
    for_each_partition
        if
        :: tx.moves[p] && tx.to[p] > tx.from[p] -> now.next[p * LANES + tx.lane] = tx.to[p]
        :: else -> skip
        fi;
    next_partition
}

/* sql/lane/apply: applied and counted, or parked: decided once, in one snapshot (F1). `found`: does the UPDATE find
 * message 0; `missing`: does the part that parks miss it. The two differ in R8 only. */
inline apply_batch(tx, found, missing) {
    for_each_partition
        m = 0;
        do
        :: m == LANES -> break
        :: else ->
           if
           :: m % tx.width == tx.lane ->
              a = tx.batch[p] & whole(events(m));
              b = (m == 0 -> a & whole(LATE) : 0);
              now.done[p * LANES + m] = now.done[p * LANES + m] + a - (found -> 0 : b);
              now.parked[p] = now.parked[p] + (missing -> b : 0)
           :: else -> skip
           fi;
           m++
        od;
#if UNDECODABLE != 0
        if  /* sql/lane/letters.sql; the key of dead_letter would hide a second letter, so it is left out here */
        :: tx.lane == letter_lane(tx.maker, tx.width) ->
           now.letters[p] = now.letters[p] + (tx.batch[p] & whole(UNDECODABLE))
        :: else -> skip
        fi;
#endif
    next_partition
}

/* sql/lane/wake, expire.sql: what the DELETE returns is what is applied or buried (F17). */
inline settle_parked(tx) {
    for_each_partition
#ifdef M_wakelist   /* R3: applies the list that the client has read before */
        if
        :: tx.kind == WAKE && tx.moves[p] ->
           now.done[p * LANES] = now.done[p * LANES] + tx.batch[p];
           now.parked[p] = now.parked[p] & ~whole(tx.batch[p])
        :: else -> skip
        fi;
#else
        if
        :: tx.moves[p] && (now.born == (tx.kind == WAKE)) ->
           if
           :: now.parked[p] != 0 && tx.generation[p] != now.generation ->
              wrong("wrong: a transaction of an old generation takes effect\n")
           :: else -> skip
           fi;
           now.done[p * LANES] = now.done[p * LANES] + now.parked[p];
           now.parked[p] = 0
        :: else -> skip
        fi;
#endif
    next_partition
}

/* What has nothing to decide goes in one flight. */
#if PARTITIONS == 1
#define has_flights(tx) ((tx.kind == APPLY && tx.batch[0] != 0) || tx.kind == WAKE)
#define may_lock(tx) (!(tx.moves[0] && locked[tx.lane]))
#else
#define has_flights(tx) ((tx.kind == APPLY && (tx.batch[0] != 0 || tx.batch[1] != 0)) || tx.kind == WAKE)
#define may_lock(tx) (!(tx.moves[0] && locked[tx.lane]) && !(tx.moves[1] && locked[LANES + tx.lane]))
#endif

inline set_locks(tx, value) {
    for_each_partition
#ifndef M_nolock                    /* the rows are compared, and not held */
        locked[p * LANES + tx.lane] = (tx.moves[p] -> value : locked[p * LANES + tx.lane])
#endif
    next_partition
}

/* The first flight: sets `good`. Whatever it waits for is over. */
inline decide(tx) {
    fence(tx);
    tx.seen = good && now.born;
    if
    :: good -> set_locks(tx, 1)
    :: else -> skip
    fi
}

/* The second flight, of a transaction whose rows are locked: nothing of it can fail but the session. */
inline write(tx) {
    good = 1;
    half = 0;
    set_locks(tx, 0);
    if
    :: tx.kind != APPLY -> settle_parked(tx)
#if defined(M_twosnapshots)         /* parks what a later snapshot does not find */
    :: tx.kind == APPLY -> move_positions(tx); apply_batch(tx, tx.seen, !now.born)
#elif defined(M_interleave)         /* `maker`: another lane's COMMIT on the connection has moved the positions */
    :: tx.kind == APPLY ->
       if
       :: tx.maker == 0 -> move_positions(tx)
       :: else -> skip
       fi;
       apply_batch(tx, tx.seen, !tx.seen)
#else
    :: tx.kind == APPLY -> move_positions(tx); apply_batch(tx, tx.seen, !tx.seen)
#endif
    fi;
    committed()
}

/* One transaction in one flight: `good` says whether it committed, `half` whether it is only the first of two. */
inline execute(tx) {
    half = 0;
    fence(tx);
#ifdef M_positionfirst
    good = good || tx.maker == 1;
#endif
    if
    :: good ->
       if
       :: tx.kind != APPLY -> settle_parked(tx)
#if defined(M_datafirst)          /* `maker` keeps which of the two it is */
       :: tx.kind == APPLY && tx.maker == 0 -> tx.maker = 1; half = 1; apply_batch(tx, now.born, !now.born)
       :: tx.kind == APPLY && tx.maker == 1 -> move_positions(tx)
#elif defined(M_positionfirst)
       :: tx.kind == APPLY && tx.maker == 0 -> tx.maker = 1; half = 1; move_positions(tx)
       :: tx.kind == APPLY && tx.maker == 1 -> apply_batch(tx, now.born, !now.born)
#else
       :: else -> move_positions(tx); apply_batch(tx, now.born, !now.born)
#endif
       fi;
       committed()
    :: else -> skip
    fi
}

inline clear(tx) {
    tx.kind = NONE;
    tx.lane = 0;
    tx.width = 0;
    tx.maker = 0;
    tx.seen = 0;
    for_each_partition
        tx.moves[p] = 0;
        tx.old[p] = 0;
        tx.from[p] = 0;
        tx.to[p] = 0;
        tx.generation[p] = 0;
        tx.batch[p] = 0;
    next_partition
}

inline adopt_orphan(tx) {
    orphan.kind = tx.kind;
    orphan.lane = tx.lane;
    orphan.width = tx.width;
    orphan.maker = tx.maker;
    orphan.seen = tx.seen;
    for_each_partition
        orphan.moves[p] = tx.moves[p];
        orphan.from[p] = tx.from[p];
        orphan.to[p] = tx.to[p];
        orphan.generation[p] = tx.generation[p];
        orphan.batch[p] = tx.batch[p];
    next_partition
}

/* ==== partitions of an instance (src/core/partition.c, src/core/assignment.c) ==== */

/* Lane l takes the record's offset in, and the record if it has a part in it [admit]. */
inline admit_to_lane(offset) {
    good = 0;
    m = l;
    do
    :: m >= LANES -> break
    :: else -> good = good || (events(m) & each(offset)) != 0; m = m + width[i]
    od;
    good = good || ((UNDECODABLE & each(offset)) != 0 && l == letter_lane(i, width[i]));
#ifdef M_halfadmit  /* F19: no capacity in the second lane */
    good = good && l == 0;
#endif
    LANE.queue[p] = LANE.queue[p] + (good -> each(offset) : 0);
    if
    :: LANE.accepted[p] <= offset -> LANE.accepted[p] = offset + 1
    :: else -> skip
    fi
}

/* While a rewind is under way nothing above the record that was asked for is taken until that one came (F5): what comes first may have
 * been fetched before, or stem from an earlier rewind. */
#ifdef M_rewindbelow                /* until any record below the old position came */
#define is_dropped(offset) (SLOT.rewinding && offset >= SLOT.rewind_from)
#else
#define is_dropped(offset) (SLOT.rewinding && offset > SLOT.rewind_to)
#endif

/* [rcpt_engine_admits, rcpt_engine_deliver_take] */
inline deliver(offset) {
    again = 0;                      /* does a lane take it */
    for_each_lane
        again = again || LANE.accepted[p] <= offset;
    next_lane;
    if
    :: is_dropped(offset) -> skip
    :: else ->
#ifndef M_forgetold
       /* Kafka has delivered it, whether a lane takes it or not. */
       SLOT.position = (offset >= SLOT.position -> offset + 1 : SLOT.position);
#endif
       if
       :: again ->
          SLOT.position = offset + 1;
          end_rewind()
       :: else -> skip
       fi;
       for_each_lane
           if
#ifdef M_dedupexp                   /* F3: compared with the committed position instead of the accepted one */
           :: LANE.expected[p] <= offset -> admit_to_lane(offset)
#else
           :: LANE.accepted[p] <= offset -> admit_to_lane(offset)
#endif
           :: else -> skip
           fi;
       next_lane
    fi
}

inline end_rewind() {
    SLOT.rewinding = 0;
    SLOT.rewind_from = 0;
    SLOT.rewind_to = 0
}

/* [engine_rewind] */
inline go_back(offset) {
    if
    :: SLOT.rewinding && offset >= SLOT.rewind_to -> skip   /* on the way already */
    :: !SLOT.rewinding && offset >= SLOT.position -> skip   /* nothing above it was delivered */
    :: else ->
#ifdef M_seeklost
       SLOT.position = offset;
#else
#ifdef M_rewindbelow
       SLOT.rewind_from = (SLOT.rewinding -> SLOT.rewind_from : SLOT.position);
#endif
       SLOT.rewinding = 1;
       SLOT.rewind_to = offset;
#endif
       SLOT.seek = offset + 1
    fi
}

/* [check_rewinds]: un-assign and assign; nothing that was fetched before is delivered afterwards, so a gap is a gap. */
inline assign_again() {
    SLOT.position = SLOT.rewind_to;
    SLOT.fetch = SLOT.rewind_to;
    SLOT.seek = 0;
    end_rewind()
}

/* Rows of all lanes in one reading, with the pins that allow them; kept in `expected` until the engine gets them. */
inline read_rows() {
    for_each_lane
        LANE.expected[p] = now.next[p * LANES + l];
    next_lane;
    SLOT.generation = now.generation;
    SLOT.state = READ
}

/* [rcpt_engine_assign]: a new epoch, so whatever is in flight is old. */
inline assign() {
    SLOT.state = ASSIGNED;
    SLOT.position = OFFSETS;
    for_each_lane
        LANE.accepted[p] = LANE.expected[p];
        LANE.sent.old[p] = (LANE.sent.kind != NONE);
        SLOT.position = (LANE.expected[p] < SLOT.position -> LANE.expected[p] : SLOT.position);
    next_lane;
    SLOT.fetch = SLOT.position
}

/* [rcpt_engine_revoke], also the first half of a refresh. */
inline revoke() {
    l = 0;
    do
    :: l == LANES -> break
    :: else ->
       LANE.expected[p] = 0;
       LANE.accepted[p] = 0;
       LANE.queue[p] = 0;
       LANE.sent.old[p] = (LANE.sent.kind != NONE);
       l++
    od;
    SLOT.state = IDLE;
    SLOT.generation = 0;
    SLOT.position = 0;
    SLOT.fetch = 0;
    SLOT.seek = 0;
    end_rewind()
}

/* A transaction that is open ends with its session. */
inline roll_back() {
    if
    :: LANE.state == OPEN || LANE.state == WRITING -> set_locks(LANE.sent, 0)
    :: else -> skip
    fi
}

/* The process ends and starts again with the configuration of now. */
inline restart() {
    for_each_partition
        revoke();
    next_partition;
    l = 0;
    do
    :: l == LANES -> break
    :: else -> roll_back(); clear(LANE.sent); LANE.state = UNSYNCED; l++
    od;
    width[i] = configured
}

/* Rows for all partitions that have none, and their number, in one synchronous transaction (sql/control/partitions_add). */
inline boot() {
    if
#ifdef M_bootblind
    :: true ->
#else
    :: now.partitions == part ->
#endif
       for_each_partition
           if
           :: p >= part ->
              l = 0;
              do
              :: l == now.layout -> break
              :: else -> now.next[p * LANES + l] = 0; l++
              od
           :: else -> skip
           fi;
       next_partition;
       now.partitions = PARTITIONS
    :: else -> skip     /* another instance was first */
    fi
}

#define MINE slots[i * PARTITIONS + part]

/* One partition in one instance. */
proctype Partition(byte i; byte part) {
end:do
    /* -- the group's decisions, noticed late -- */
    :: d_step { MINE.state == IDLE && owner[part] == i && part < now.partitions && width[i] == now.layout ->
#ifdef M_twolooks
           partition_says("reads the pins\n"); MINE.state = PINNED }
    :: d_step { MINE.state == PINNED ->
#endif
           partition_says("reads its positions\n"); p = part; read_rows() }
    :: d_step { MINE.state == READ && owner[part] == i -> partition_says("is assigned\n"); p = part; assign() }
    :: d_step { MINE.state != IDLE && owner[part] != i -> partition_says("is revoked\n"); p = part; revoke() }
    /* Pins differ from the configuration: it refuses to go on, and is started with the new one. */
    :: d_step { MINE.state == IDLE && owner[part] == i && part < now.partitions && width[i] != now.layout &&
                width[i] != configured -> partition_says("is refused: the instance starts again\n"); restart() }
#if BOOTED < PARTITIONS
    :: d_step { MINE.state == IDLE && owner[part] == i && part == now.partitions ->
           partition_says("has no rows\n"); MINE.state = BOOTING }
#ifdef M_bootasync
    :: atomic { MINE.state == BOOTING -> flushed_or_not;
#else
    :: atomic { MINE.state == BOOTING -> flushed;
#endif
           d_step { partition_says("inserts rows\n"); boot(); MINE.state = IDLE; committed(); choice = 0 } }
#endif
    /* -- delivery -- */
    :: d_step { MINE.state == ASSIGNED && MINE.fetch < OFFSETS ->
           p = part;
           k = MINE.fetch;
           MINE.fetch = k + 1;
           partition_says("delivers record "); printf("%d\n", k);
           if
           :: exists(k) -> deliver(k)
           :: else -> skip
           fi }
    :: d_step { MINE.seek > 0 -> partition_says("the seek takes effect\n"); MINE.fetch = MINE.seek - 1; MINE.seek = 0 }
#ifndef M_noreassign
    :: d_step { MINE.rewinding -> partition_says("time-out of the rewind: assigned again\n"); p = part; assign_again() }
#endif
#if LOSTSEEKS > 0   /* what was fetched already is void, or it is not */
    :: d_step { MINE.seek > 0 && lostseeks > 0 -> partition_says("the seek is lost\n"); lostseeks--; MINE.seek = 0 }
    :: d_step { MINE.seek > 0 && lostseeks > 0 && MINE.rewinding && MINE.fetch < OFFSETS ->
           partition_says("the seek is lost, a fetched record with it\n"); lostseeks--; MINE.seek = 0; MINE.fetch++ }
#endif
#if REDELIVERIES > 0
    :: d_step { MINE.state == ASSIGNED && MINE.fetch > 0 && redeliveries > 0 ->
           partition_says("begins again\n"); redeliveries--; MINE.fetch = 0 }
#endif
    od
}

#undef MINE

/* ==== lanes (src/core/lane.c) ==== */

/* [read_positions]: the rows as they are now; the answer comes later. batch: there is no row. */
inline ask() {
    LANE.state = READING;
    LANE.sent.kind = ANSWER;
    for_each_partition
        if
        :: SLOT.state == ASSIGNED ->
           LANE.sent.moves[p] = 1;
           LANE.sent.batch[p] = !(p < now.partitions && l < now.layout);
           LANE.sent.to[p] = now.next[p * LANES + l];
           LANE.sent.generation[p] = now.generation
        :: else -> skip
        fi;
    next_partition
}

/* [resync_row]: one row against what the lane believes. Own, never sent and of another instance are one case (F3). */
inline resync_row(current) {
    if
    :: current >= LANE.expected[p] ->
       LANE.queue[p] = LANE.queue[p] & ~below(current);
       LANE.expected[p] = current;
       LANE.accepted[p] = (LANE.accepted[p] < current -> current : LANE.accepted[p])
    :: else ->                      /* the database went back */
#ifdef M_resetall
       l = 0;                       /* the other lanes forget what they have accepted, too */
       do
       :: l == width[i] -> break
       :: else -> LANE.accepted[p] = current; l++
       od;
       l = lane;
#endif
#ifndef M_keepqueue
       LANE.queue[p] = 0;
#endif
       LANE.expected[p] = current;
       LANE.accepted[p] = current;
       go_back(current)
    fi
}

/* [rcpt_engine_on_positions] */
inline on_positions() {
    again = 0;
    for_each_partition
        if
        :: !LANE.sent.moves[p] || SLOT.state != ASSIGNED -> skip
#ifndef STALE_ANSWERS  /* an answer older than the assignment is used for it: safe, but for a needless rewind */
        :: LANE.sent.moves[p] && SLOT.state == ASSIGNED && LANE.sent.old[p] -> again = 1
#endif
        :: else ->
           if
           :: LANE.sent.batch[p] || LANE.sent.generation[p] != SLOT.generation ->
              if                    /* it must have been deleted */
              :: LANE.sent.batch[p] && width[i] == now.layout -> wrong("wrong: an instance stops for a missing row\n")
              :: else -> skip
              fi;
              again = 1;
              revoke();             /* refresh: the pins are read again, then the positions */
              l = lane
           :: else -> resync_row(LANE.sent.to[p])
           fi
        fi;
    next_partition;
    clear(LANE.sent);
    LANE.state = (again -> UNSYNCED : READY)
}

#define FIRST_OF(bag) \
    ((bag) & 3 -> (bag) & 3 : ((bag) & 12 -> (bag) & 12 : ((bag) & 48 -> (bag) & 48 : (bag) & 192)))
#define OFFSET_OF(record) ((record) & 3 -> 0 : ((record) & 12 -> 1 : ((record) & 48 -> 2 : 3)))
#define ALL PARTITIONS

/* [seal_apply, plan_moves]: everything that is queued, or only the first record of partition `choice`. A partition of which
 * nothing stays in the queue moves on to what was accepted: so idle lanes advance (F19). Sets `good` if there is anything
 * to send. */
inline seal_apply() {
    good = 0;
    for_each_partition
        if
        :: SLOT.state == ASSIGNED ->
           a = (choice == ALL -> LANE.queue[p] : (choice == p -> FIRST_OF(LANE.queue[p]) : 0));
           b = (LANE.queue[p] == a -> LANE.accepted[p] : (a != 0 -> OFFSET_OF(a) + 1 : LANE.expected[p]));
#ifdef M_idleadv    /* what was delivered, though events wait in the queue */
           b = SLOT.position;
#endif
           if
           :: b > LANE.expected[p] || a != 0 ->
              good = 1;
              LANE.sent.batch[p] = a;
              LANE.queue[p] = LANE.queue[p] - a;
              LANE.sent.moves[p] = (b > LANE.expected[p]);
              LANE.sent.from[p] = LANE.expected[p];
              LANE.sent.to[p] = b;
              LANE.sent.generation[p] = SLOT.generation
           :: else -> skip
           fi
        :: else -> skip
        fi;
    next_partition;
    fly(APPLY)
}

/* [seal_wake]: the fence names every partition, and moves none. */
inline seal_parked(kind_of) {
    for_each_partition
        if
        :: SLOT.state == ASSIGNED ->
           LANE.sent.moves[p] = 1;
           LANE.sent.from[p] = LANE.expected[p];
           LANE.sent.to[p] = LANE.expected[p];
           LANE.sent.generation[p] = SLOT.generation;
#ifdef M_wakelist
           LANE.sent.batch[p] = now.parked[p];
#endif
        :: else -> skip
        fi;
    next_partition;
    fly(kind_of)
}

inline fly(kind_of) {
    LANE.sent.kind = kind_of;
    LANE.sent.lane = l;
    LANE.sent.width = width[i];
#ifdef M_badlane
    LANE.sent.maker = i;
#endif
    LANE.state = IN_FLIGHT
}

/* [lane_requeue]: raw events return to the queue, except those of ended epochs; the next batch is built from them (F3). */
inline requeue() {
    for_each_partition
        if
#ifdef M_reassignfilter
        :: LANE.sent.kind == APPLY && SLOT.state == ASSIGNED -> LANE.queue[p] = LANE.queue[p] + LANE.sent.batch[p]
#else
        :: LANE.sent.kind == APPLY && SLOT.state == ASSIGNED && !LANE.sent.old[p] ->
           LANE.queue[p] = LANE.queue[p] + LANE.sent.batch[p]
#endif
        :: else -> skip
        fi;
    next_partition;
    clear(LANE.sent)
}

/* [on_committed, advance_positions] */
inline on_committed() {
    for_each_partition
        if
#ifdef M_reassign
        :: LANE.sent.moves[p] && SLOT.state == ASSIGNED -> LANE.expected[p] = LANE.sent.to[p]
#else
        :: LANE.sent.moves[p] && SLOT.state == ASSIGNED && !LANE.sent.old[p] -> LANE.expected[p] = LANE.sent.to[p]
#endif
        :: else -> skip
        fi;
    next_partition;
    clear(LANE.sent);
    LANE.state = READY
}

inline on_fenced() {
#if defined(M_whole)                /* sends the same batch again */
    LANE.state = IN_FLIGHT
#elif defined(M_foldkeep)           /* takes rows that have moved out of the fence, and sends the same content again */
    for_each_partition
        if
        :: LANE.sent.moves[p] && now.next[p * LANES + l] != LANE.sent.from[p] ->
           LANE.sent.moves[p] = 0;
           LANE.expected[p] = now.next[p * LANES + l];
           LANE.accepted[p] = (LANE.accepted[p] < LANE.expected[p] -> LANE.expected[p] : LANE.accepted[p]);
           LANE.queue[p] = LANE.queue[p] & ~below(LANE.expected[p])
        :: else -> skip
        fi;
    next_partition;
    LANE.state = IN_FLIGHT
#else
    requeue();
    LANE.state = UNSYNCED
#endif
}

/* The connection is gone: committed or not. */
inline on_unknown() {
    again = (LANE.state >= IN_FLIGHT);
    requeue();
#ifdef M_noidle     /* F4: only a lane that had something in flight reads its positions again */
    LANE.state = (again || LANE.state < READY -> UNSYNCED : READY)
#else
    LANE.state = UNSYNCED
#endif
}

#define MINE lanes[i * LANES + lane]
#define is_assigned(part) (slots[i * PARTITIONS + part].state == ASSIGNED)
#define is_behind(part) (is_assigned(part) && MINE.accepted[part] > MINE.expected[part])
#define has_queued(part) (MINE.queue[part] != 0)
#define has_more(part) (has_queued(part) && MINE.queue[part] != FIRST_OF(MINE.queue[part]))
#define has_parked(part) (is_assigned(part) && now.parked[part] != 0)
#define has_moved(part) (is_assigned(part) && (now.next[part * LANES + lane] != MINE.expected[part] || \
                                               now.generation != slots[i * PARTITIONS + part].generation))
#if defined(M_noverify) || defined(M_noidle)
#define may_verify false
#else
#define may_verify (MINE.state == READY && !any(has_queued) && any(is_assigned))
#endif
/* SHARED: the lanes of an instance have one connection, and it has one transaction at a time [lane_step,
 * read_positions]. */
#if defined(SHARED) && !defined(M_interleave)
#define OTHER lanes[i * LANES + 1 - lane]
#define is_free (OTHER.state < IN_FLIGHT)
#else
#define is_free true
#endif
#define finds_difference (may_verify && any(has_moved))
#if PARTITIONS == 1
#define any(property) property(0)
#else
#define any(property) (property(0) || property(1))
#endif

#define say_outcome if :: good -> printf("commits\n") :: else -> printf("is fenced off\n") fi
inline say_batch(tx) {
    for_each_partition
        if
        :: tx.moves[p] || tx.batch[p] != 0 ->
           printf("partition %d from %d to %d with records %x ", p, tx.from[p], tx.to[p], tx.batch[p])
        :: else -> skip
        fi;
    next_partition;
    printf("\n")
}

/* One lane of one instance, and the backend that serves it. */
proctype LaneOf(byte i; byte lane) {
end:do
    /* A new connection, or [verify]: an idle lane asks every progress.verify_interval; here whenever there is something to
     * see, and LOOKS times when there is not. */
    :: d_step { is_free && (MINE.state == UNSYNCED && lane < width[i] && any(is_assigned) || finds_difference) ->
           lane_says("asks for its positions\n"); l = lane; ask() }
#if LOOKS > 0
    :: d_step { is_free && may_verify && looks > 0 -> lane_says("verifies its positions\n"); looks--; l = lane; ask() }
#endif
    :: d_step { MINE.state == READING -> lane_says("takes in its positions\n"); l = lane; on_positions() }
    /* A batch may be cut after any record: here after none, or after the first one of a partition. */
    :: atomic { is_free && MINE.state == READY && (any(is_behind) || any(has_queued)) ->
           if
           :: choice = ALL
#if PARTITIONS == 1
           :: has_more(0) -> choice = 0
#else
           :: has_queued(0) && (has_more(0) || has_queued(1)) -> choice = 0
           :: has_queued(1) && (has_more(1) || has_queued(0)) -> choice = 1
#endif
           fi;
           d_step { l = lane; seal_apply(); lane_says("sends "); say_batch(LANE.sent); choice = 0 } }
#if LATE != 0
    /* The poll of parked rows and the decision to wake are one step: a late wake finds nothing, or stops at the fence. */
    :: d_step { is_free && MINE.state == READY && lane == 0 && any(has_parked) ->
           l = lane;
           if
           :: now.born -> lane_says("sends a wake\n"); seal_parked(WAKE)
           :: else -> lane_says("sends an expiry\n"); seal_parked(EXPIRE)
           fi }
#endif

    /* -- the backend -- */
#if defined(M_datafirst) || defined(M_positionfirst)
    :: atomic { MINE.state == IN_FLIGHT || MINE.state == HALFWAY -> flushed;
#else
    :: d_step { MINE.state == IN_FLIGHT && has_flights(MINE.sent) && may_lock(MINE.sent) ->
           decide(MINE.sent);
           lane_says("first flight "); say_outcome;
           MINE.state = (good -> OPEN : FENCED) }
    /* -- the client has counted -- */
    :: d_step { MINE.state == OPEN -> lane_says("sends the second flight\n"); MINE.state = WRITING }
    :: atomic { MINE.state == WRITING -> flushed_or_not;
           d_step {
#ifdef M_interleave
               if   /* the COMMIT is that of all that is open on the connection */
               :: lanes[i * LANES + 1 - lane].state == OPEN && lanes[i * LANES + 1 - lane].sent.maker == 0 && lanes[i * LANES + 1 - lane].sent.kind == APPLY ->
                  move_positions(lanes[i * LANES + 1 - lane].sent);
                  lanes[i * LANES + 1 - lane].sent.maker = 1
               :: else -> skip
               fi;
#endif
               write(MINE.sent);
               lane_says("transaction "); say_outcome;
               MINE.state = COMMITTED;
               choice = 0
           } }
    :: atomic { MINE.state == IN_FLIGHT && !has_flights(MINE.sent) && may_lock(MINE.sent) -> flushed_or_not;
#endif
           d_step {
               execute(MINE.sent);
               lane_says("transaction "); say_outcome;
               MINE.state = (!good -> FENCED : (half -> HALFWAY : COMMITTED));
               choice = 0
           } }

    /* -- results -- */
    :: d_step { MINE.state == COMMITTED -> lane_says("gets the commit\n"); l = lane; on_committed() }
    :: d_step { MINE.state == FENCED -> lane_says("gets the fence\n"); l = lane; on_fenced() }

    /* -- faults -- */
#if LOSSES > 0
    :: atomic { MINE.state != UNSYNCED && losses > 0 ->
           if
           :: choice = 0
           :: orphan.kind == NONE && (MINE.state == WRITING || MINE.state == IN_FLIGHT && !has_flights(MINE.sent)) -> choice = 1
           fi;
           d_step {
               losses--;
               l = lane;
               lane_says("loses its connection\n");
               if
               :: choice == 1 -> adopt_orphan(LANE.sent)
               :: else -> roll_back()
               fi;
               on_unknown();
               choice = 0
           } }
#endif
#if STOPS > 0
    /* The client stands still, until idle_in_transaction_session_timeout; it learns of that when it goes on. */
    :: d_step { MINE.state == OPEN && stops > 0 ->
           stops--;
           l = lane;
           lane_says("its session ends between the flights\n");
           roll_back();
#ifdef M_writtenafter               /* and writes the second flight all the same, on a new connection */
           apply_batch(LANE.sent, LANE.sent.seen, !LANE.sent.seen);
           check_tables();
           l = lane;
#endif
           on_unknown() }
#endif
#if RETRIES > 0
    :: d_step { (MINE.state == IN_FLIGHT || MINE.state == WRITING) && retries > 0 ->
           lane_says("is to try again\n"); retries--; l = lane; roll_back(); requeue(); LANE.state = READY }
#endif
    od
}
#undef MINE

/* ==== the rest of the world ==== */

/* The connection's end finds a backend working: it commits, or it does not, at any time later. */
proctype Backend() {
end:do
    :: atomic { orphan.kind != NONE && (has_flights(orphan) || may_lock(orphan)) ->
           if
           :: choice = 0
           :: choice = 1
#if CRASHES > 0
           :: crashes > 0 -> choice = 2
#endif
           fi;
           d_step {
               good = 0;
               if
               :: has_flights(orphan) && choice != 0 -> write(orphan)
               :: has_flights(orphan) && choice == 0 -> set_locks(orphan, 0)
               :: !has_flights(orphan) && choice != 0 -> execute(orphan)
               :: else -> skip
               fi;
               printf("the backend without a client "); say_outcome;
               clear(orphan);
               choice = 0
           } }
    od
}

/* What was not flushed is gone, and so is every transaction in flight. */
inline crash() {
    crashes--;
    copy_tables(now, disk);
    clear(orphan);
    b = 0;                          /* no transaction is open any more */
    do
    :: b == PARTITIONS * LANES -> break
    :: else -> locked[b] = 0; b++
    od;
    if
    :: crashes == 0 ->
       disk.layout = 0;             /* from here on it is never read */
       disk.generation = 0;
       disk.partitions = 0;
       disk.born = 0;
       for_each_partition
           disk.parked[p] = 0;
           disk.letters[p] = 0;
           m = 0;
           do
           :: m == LANES -> break
           :: else -> disk.next[p * LANES + m] = 0; disk.done[p * LANES + m] = 0; m++
           od;
       next_partition
    :: else -> skip
    fi
}

/* Choice 1: a pooler keeps the connections of lanes that have nothing in flight. */
inline connections_end() {
    i = 0;
    do
    :: i == INSTANCES -> break
    :: else ->
       l = 0;
       do
       :: l == LANES -> break
       :: else ->
          if
          :: (LANE.state >= IN_FLIGHT && LANE.state <= WRITING) || (choice == 0 && LANE.state != UNSYNCED) -> on_unknown()
          :: else -> skip
          fi;
          l++
       od;
       i++
    od;
    i = 0
}

proctype Database() {
    byte i;                         /* 0 between steps */
end:do
    :: atomic { crashes > 0 ->
           if
           :: choice = 0
           :: choice = 1
           fi;
           d_step { printf("the database goes back to what was flushed (seen: %d)\n", 1 - choice);
                    crash(); connections_end(); choice = 0 } }
    od
}

proctype Group() {
end:do
    :: d_step { rebalances > 0 && owner[0] != 0 -> printf("group: partition 0 to instance 0\n"); rebalances--; owner[0] = 0 }
    :: d_step { rebalances > 0 && owner[0] != 1 -> printf("group: partition 0 to instance 1\n"); rebalances--; owner[0] = 1 }
#if INSTANCES > 2
    :: d_step { rebalances > 0 && owner[0] != 2 -> printf("group: partition 0 to instance 2\n"); rebalances--; owner[0] = 2 }
#endif
#if PARTITIONS > 1
    :: d_step { rebalances > 0 && owner[1] != 0 -> printf("group: partition 1 to instance 0\n"); rebalances--; owner[1] = 0 }
    :: d_step { rebalances > 0 && owner[1] != 1 -> printf("group: partition 1 to instance 1\n"); rebalances--; owner[1] = 1 }
#endif
    od
}

proctype Killer() {
    byte i;                         /* 0 between steps */
end:do
    :: atomic { kills > 0 ->
           if
           :: i = 0
#if INSTANCES > 1
           :: i = 1
#endif
           fi;
           d_step { printf("instance %d dies\n", i); kills--; restart(); i = 0 } }
    od
}

proctype Platform() {
end:do
    :: d_step { !now.born -> printf("platform: inserts the row of message 0\n"); now.born = 1; flushed; committed(); choice = 0 }
    od
}

/* Re-laning, when all lanes of each partition are at one offset: the rows are replaced and the generation is raised in one
 * synchronous transaction. Instances run on, with what they have in flight. */
#if PARTITIONS * LANES == 1
#define none_locked !locked[0]
#elif PARTITIONS * LANES == 2
#define none_locked (!locked[0] && !locked[1])
#else
#define none_locked (!locked[0] && !locked[1] && !locked[2] && !locked[3])
#endif
#define is_level(part) (FIRST == 1 || now.next[(part) * LANES] == now.next[(part) * LANES + 1])
#if PARTITIONS == 1
#define all_level is_level(0)
#else
#define all_level (is_level(0) && is_level(1))
#endif
inline relane() {
    relanes--;
    now.layout = LAST;
    now.generation++;
    for_each_partition
        l = 1;
        do
        :: l == LANES -> break
        :: else -> now.next[p * LANES + l] = (l < LAST -> now.next[p * LANES] : 0); l++
        od;
    next_partition;
    configured = LAST;
    committed()
}

proctype Operator() {
end:do
#ifdef M_relaneearly
    :: atomic { relanes > 0 && none_locked -> flushed;
#elif defined(M_relaneasync)
    :: atomic { relanes > 0 && none_locked && all_level -> flushed_or_not;
#else
    :: atomic { relanes > 0 && none_locked && all_level -> flushed;
#endif
           d_step { printf("operator: from layout %d to %d\n", FIRST, LAST); relane(); choice = 0 } }
    od
}

/* When nothing can happen any more, all is there. */
proctype Judge() {
    timeout;
    d_step { check_end() }
}

init {
    byte i;
    atomic {
        d_step {
            configured = FIRST;
            now.layout = FIRST;
            now.generation = 1;
            now.partitions = BOOTED;
            now.born = (LATE == 0);
            i = 0;
            do
            :: i == INSTANCES -> break
            :: else -> width[i] = FIRST; i++
            od;
            flushed;
            committed();
            choice = 0
        }
        i = 0;
        do
        :: i == INSTANCES -> break
        :: else ->
           p = 0;
           do
           :: p == PARTITIONS -> break
           :: else -> run Partition(i, p); p++
           od;
           l = 0;
           do
           :: l == LANES -> break
           :: else -> run LaneOf(i, l); l++
           od;
           i++
        od;
#if LOSSES > 0
        run Backend();
#endif
#if CRASHES > 0
        run Database();
#endif
#if REBALANCES > 0
        run Group();
#endif
#if KILLS > 0
        run Killer();
#endif
#if LATE != 0
        run Platform();
#endif
#if RELANES > 0
        run Operator();
#endif
        i = 0;
        run Judge()
    }
}
