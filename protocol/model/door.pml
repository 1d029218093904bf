/*
 * The door exchange of protocol/doc.go (ask, claim, grant, result) for one unlock request at one door of a branch with
 * several agents, checked by spin over all interleavings (make model).
 *
 * Network: a message that was sent may be delivered never, often, late and in any order. So a message is a bit that is set
 * when it is sent and stays set.
 *
 * Agents 0 and 1 are honest. Each has a credential of its own and may restart, which loses its nonces. Agent 0 has the
 * door; agent 1 has it too (a replacement Pi with the same device names) or not (a Pi on the bench). One credential is
 * active, and an administrator may activate the other one at any time.
 *
 * The thief has a third, stolen credential that is standby. It knows every nonce and sends any message about it at any time,
 * also on the topics of the branch; so it needs no state.
 *
 * The guest may announce the press: then the ask, the claim and their copies come ahead of the request, and a replica may keep a
 * claim for the press.
 *
 * Times are events that may happen or not, in the order that the clocks allow. PLANT=n plants a fault; check.sh expects spin
 * to find an error for each of them, and none without.
 */

#ifndef PLANT
#define PLANT 0
#endif
#define RESULT_WITHOUT_NONCE     1  /* as it was: every agent answers every grant, and its result counts without a nonce */
#define RESULT_OF_STANDBY        2  /* results of standby agents count */
#define CLAIM_OF_STANDBY         3  /* claims of standby agents count */
#define SHARED_TOPIC             4  /* messages on the topics of the branch count although it has several credentials */
#define DENY_FAILS_FOR_STANDBY   5  /* a denied claim of a standby agent fails the request */
#define DROPPED_AFTER_RESTART    6  /* an agent that restarted reports dropped */
#define NONCES_SURVIVE           7  /* a restarted agent remembers the nonces it had made, and not which it has used */
#define NONCE_NOT_SPENT          8  /* the nonce stays usable after the line was driven */
#define NO_AGE_CHECK             9  /* the agent does not measure the age of a grant */
#define NO_SIGNATURE            10  /* the agent does not verify the signature of a grant */
#define GRANT_TO_SECOND_NONCE   11  /* a granted request is granted to another nonce too */
#define FAIL_WITHOUT_COMPARE    12  /* the claim limit fails a request that was granted in the meantime */
#define RESERVATION_UNCHECKED   13  /* the reservation is not checked when the claim is granted */
#define REPLICA_CLOCK           14  /* each replica measures the claim limit with its own clock */
#define ABANDON_EARLY           15  /* a request without a report ends before its nonce has expired */
#define LEGACY_DROPPED          16  /* dropped counts without a nonce, from an agent of the previous release */
#define ANNOUNCED_UNCHECKED     17  /* a press that finds a claim is granted without a look at the reservation */
#define GRANT_AHEAD             18  /* the claim of an announced press is granted before the press */
#define PLANTS                  18

#define AGENTS 2
#define EACH   2                 /* nonces of an agent: one before and one after a restart */
#define NONCES 4
#define OF(n)  ((n) / EACH)      /* the agent that made nonce n */
#define NONE   NONCES

mtype = { absent, pending, granted, success, failed, unknown };

mtype request = absent;          /* the row of the request */
byte grantedTo = NONE;           /* the nonce in the row */
byte kept = NONE;                /* the nonce of the claim that the replica keeps for an announced press */
bool valid = true;               /* the reservation is valid */
bool late = false;               /* 2.5 s have passed since the request was accepted, by the clock of the database */
byte current = 0;                /* the agent whose credential is active */
bool hasDoor[AGENTS];
bool legacy;                     /* the agents are of the previous release: their results have no nonce */

/* Messages that were sent. Claims and results are on the topics of their agent's credential. */
bool asked[AGENTS];
bool claimed[NONCES];
bool grantSent[NONCES];          /* to the agent that claimed */
bool openedSent[NONCES];
bool failedSent[NONCES];
bool droppedSent[NONCES];
bool sharedDropped = false;      /* on the topic of the branch */

/* The memory of the agents. */
bool fresh[NONCES];              /* known and unused */
bool known[NONCES];              /* known */
bool aged[NONCES];               /* 1.5 s have passed since the claim with this nonce */
byte made[AGENTS];               /* nonces made */
bool restarted[AGENTS];

/* The door. */
byte pulses = 0;                 /* how often the line was driven */
bool opened = false;             /* the lock was seen to open */

/* For choices within one atomic step: no part of the state. */
hidden byte i, n;

inline drive(n) {
	assert(request != failed);   /* D5: no pulse after FAILED */
	assert(request != unknown);  /* and none after the end of the wait for a report: the next one may be FAILED */
	assert(grantedTo == n);      /* D3, D7: only a nonce that was granted */
	assert(!aged[n]);            /* D2 */
	pulses++;
	assert(pulses == 1)          /* D1 */
}

inline grant(n) {
	assert(valid);               /* D3 */
	assert(!late);               /* D2 */
	request = granted; grantedTo = n;
	grantSent[n] = true
}

inline succeed() {
	assert(opened);              /* D4: SUCCESS only if the door was driven and opened */
	request = success
}

inline fail() {
	assert(!opened);             /* D5: FAILED only if it did not open */
	request = failed
}

proctype Cloud() {
	do
	/* The guest announces the press: an ask ahead of the request, whose claim the replica keeps. Both may come too late. */
	:: atomic { request == absent -> asked[current] = true }
	:: atomic { request == absent ->
		select(n : 0 .. NONCES-1);
		if
		:: claimed[n] && PLANT == GRANT_AHEAD -> grantSent[n] = true
		:: claimed[n] && PLANT != GRANT_AHEAD -> kept = n
		:: else
		fi }
	/* The press, accepted while the reservation is valid. With a kept claim of the active agent it is granted in one statement. */
	:: atomic { request == absent && valid -> request = pending }
	:: atomic { request == absent && kept < NONCES && (valid || PLANT == ANNOUNCED_UNCHECKED) && OF(kept) == current -> grant(kept) }
	/* The ask goes to the active agent, and again while the deadline allows. */
	:: atomic { request == pending || request == granted -> asked[current] = true }
	/* A claim: in one transaction the request is pending and young, the reservation is valid, the agent is active. */
	:: atomic { request == pending && (!late || PLANT == REPLICA_CLOCK) && (valid || PLANT == RESERVATION_UNCHECKED) ->
		select(n : 0 .. NONCES-1);
		if
		:: claimed[n] && (OF(n) == current || PLANT == CLAIM_OF_STANDBY) -> grant(n)
		:: else
		fi }
	/* The same nonce gets the same grant again. Another one is denied, which changes nothing. */
	:: atomic { request == granted && grantedTo < NONCES -> grantSent[grantedTo] = true }
#if PLANT == GRANT_TO_SECOND_NONCE
	:: atomic { request == granted && valid && !late ->
		select(n : 0 .. NONCES-1);
		if
		:: claimed[n] && OF(n) == current -> grant(n)
		:: else
		fi }
#endif
	/* A denied claim of the active agent fails the request: no other agent may claim. */
	:: atomic { request == pending && (!valid || late) ->
		select(n : 0 .. NONCES-1);
		if
		:: claimed[n] && OF(n) == current -> fail()
		:: else
		fi }
	/* The thief claims; it would get a grant, and could report any outcome. */
#if PLANT == CLAIM_OF_STANDBY
	:: atomic { request == pending && !late && valid -> request = granted; grantedTo = NONE }
	:: atomic { request == granted && grantedTo == NONE -> succeed() }
#endif
#if PLANT == DENY_FAILS_FOR_STANDBY
	:: atomic { request == pending -> assert(!valid || late); fail() }
#endif
	:: atomic { request != absent && !late -> late = true }
	/* No claim in time: a compare-and-set on the row. */
	:: atomic { (request == pending || PLANT == FAIL_WITHOUT_COMPARE && request == granted) && late -> fail() }
	/* Results: of the active agent, and with the granted nonce. Agents of the previous release send none. */
	:: atomic { request == granted && grantedTo < NONCES ->
		select(n : 0 .. NONCES-1);
		if
		:: (OF(n) == current || PLANT == RESULT_OF_STANDBY) && (n == grantedTo || legacy) ->
			if
			:: openedSent[n] -> succeed()
			:: failedSent[n] -> fail()
			:: droppedSent[n] && (!legacy || PLANT == LEGACY_DROPPED) -> fail()
			:: else
			fi
		:: else
		fi }
	/* The results of the thief do not count. */
#if PLANT == RESULT_OF_STANDBY
	:: atomic { request == granted -> succeed() }
	:: atomic { request == granted -> fail() }
#endif
#if PLANT == SHARED_TOPIC
	:: atomic { request == granted -> fail() }
#endif
	/* A message on a topic of the branch counts only if the branch has one credential; here it has three. */
	:: atomic { PLANT == RESULT_WITHOUT_NONCE && request == granted && sharedDropped -> fail() }
	/* No report. The grant answered a claim that was younger than it, so the nonce has expired by then. */
	:: atomic { request == granted && grantedTo < NONCES && (aged[grantedTo] || PLANT == ABANDON_EARLY) -> request = unknown }
	od
}

proctype Administrator() {
	do
	:: atomic { valid -> valid = false }         /* cancels or moves the reservation */
	:: atomic { current == 0 -> current = 1; break } /* activates the other credential */
	od
}

proctype Agent(byte me) {
	do
	/* An ask for a door that the agent has: a new nonce, or the claim with the current one again. */
	:: atomic { asked[me] && hasDoor[me] && made[me] < EACH ->
		n = me * EACH + made[me];
		if
		:: made[me] == 0 || !fresh[n-1] || aged[n-1] ->
			if
			:: made[me] > 0 -> fresh[n-1] = false
			:: else
			fi;
			fresh[n] = true; known[n] = true; claimed[n] = true; made[me]++
		:: else
		fi }
	/* A grant. The thief replays every grant to every agent, and without signatures it would make its own. */
	:: atomic { select(n : 0 .. NONCES-1);
		if
		:: (grantSent[n] || PLANT == NO_SIGNATURE && made[OF(n)] > n % EACH) && hasDoor[me] ->
			if
			:: fresh[n] && OF(n) == me && (!aged[n] || PLANT == NO_AGE_CHECK) ->
				if
				:: PLANT != NONCE_NOT_SPENT -> fresh[n] = false
				:: else
				fi;
				if
				:: drive(n); opened = true; openedSent[n] = true
				:: drive(n); failedSent[n] = true    /* the sense line did not confirm; the line is idle again */
				:: failedSent[n] = true              /* the line could not be driven */
				fi
			:: fresh[n] && OF(n) == me && aged[n] && PLANT != NO_AGE_CHECK -> fresh[n] = false; droppedSent[n] = true
			/* Not in memory: the agent restarted, so it does not know the outcome. Its result unknown decides nothing. */
			:: !known[n] && OF(n) == me ->
				if
				:: PLANT == DROPPED_AFTER_RESTART || legacy -> droppedSent[n] = true
				:: else
				fi
			:: OF(n) != me -> sharedDropped = (PLANT == RESULT_WITHOUT_NONCE) /* another agent's nonce: silence */
			:: else
			fi
		:: else
		fi }
	/* 1.5 s pass. */
	:: atomic { select(i : 0 .. EACH-1); n = me * EACH + i; if :: i < made[me] -> aged[n] = true :: else fi }
	/* A restart. */
	:: atomic { !restarted[me] && made[me] > 0 ->
		restarted[me] = true;
		for (i : 0 .. EACH-1) {
			n = me * EACH + i;
			if
			:: PLANT == NONCES_SURVIVE && known[n] -> fresh[n] = true
			:: else -> fresh[n] = false; known[n] = false
			fi
		} }
	od
}

init {
	atomic {
		hasDoor[0] = true;
		if
		:: hasDoor[1] = true
		:: hasDoor[1] = false
		fi;
		if
		:: legacy = true
		:: legacy = false
		fi;
		run Cloud(); run Administrator(); run Agent(0); run Agent(1)
	}
}
