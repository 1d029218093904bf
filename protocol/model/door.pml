/*
 * The door exchange of protocol/doc.go (ask, claim, grant), for one unlock request at one door.
 *
 * The network is as bad as can be: whatever was sent once may be delivered never, often, late and in any order. So a
 * message is a bit that is set when it is sent and stays set. The agent may restart, and forgets its nonces then. The
 * reservation may be cancelled at any moment. Times are events that may happen or not, in the one order the clocks allow.
 *
 * Checked by spin (make model): the assertions below, over all interleavings.
 */

#define NONCES 3 /* so many claims can be made: one, and two more after restarts */

mtype = { pending, granted, success, failed, unknown };

mtype request = pending;         /* the row of the request */
bool valid = true;               /* the reservation stands */
byte grantedTo = NONCES;         /* the nonce the grant was given to */
bool claimLimit = false;         /* 2.5 s have passed since the request was accepted */

/* Messages that were sent. */
bool asked = false;
bool claimed[NONCES];
bool grantSent[NONCES];
bool openedSent[NONCES];
bool failedSent[NONCES];
bool droppedSent[NONCES];

/* What the agent remembers of a nonce. */
bool fresh[NONCES];              /* in memory, unused */
bool aged[NONCES];               /* 1.5 s have passed since it was claimed with */
byte made = 0;                   /* nonces made so far */
bool restarted = false;
byte pulses = 0;                 /* times the lock was driven */

inline drive(n) {
	/* D5: no pulse after FAILED. D3: none unless it was granted, to this nonce. */
	assert(request != failed);
	assert(grantedTo == n);
	assert(!aged[n]);
	pulses++;
	assert(pulses == 1);          /* D1 */
}

active proctype Cloud() {
	byte n;
	asked = true;                 /* published, and again as long as the deadline allows */
	do
	/* A claim: in one transaction the request is pending and young, the reservation stands -> granted. */
	:: atomic { request == pending && !claimLimit && valid ->
		select(n : 0 .. NONCES-1);
		if
		:: claimed[n] -> request = granted; grantedTo = n; grantSent[n] = true
		:: else
		fi }
	/* A claim repeated with the same nonce gets the same grant again; any other is denied, which changes nothing. */
	:: atomic { request == granted -> grantSent[grantedTo] = true }
	:: atomic { !claimLimit -> claimLimit = true }
	/* No claim in time: a compare-and-set on the same row. */
	:: atomic { request == pending && claimLimit -> request = failed }
	/* Reports count for the granted nonce only. */
	:: atomic { request == granted && openedSent[grantedTo] -> request = success }
	:: atomic { request == granted && (failedSent[grantedTo] || droppedSent[grantedTo]) -> request = failed }
	/* No report by 7 s. The grant was given to a claim younger than it, so its nonce has aged by then. */
	:: atomic { request == granted && aged[grantedTo] -> request = unknown }
	od
}

active proctype Reservation() {
	valid = false                 /* cancelled or moved, some time or never: spin explores both */
}

active proctype Agent() {
	byte n;
	do
	/* An ask: a nonce is made, or the one that is there is claimed with again. */
	:: atomic { asked && made < NONCES && (made == 0 || !fresh[made-1]) ->
		fresh[made] = true; claimed[made] = true; made++ }
	/* A grant for a nonce in memory. */
	:: atomic { made > 0 ->
		select(n : 0 .. NONCES-1);
		if
		:: grantSent[n] && fresh[n] && !aged[n] ->
			fresh[n] = false;     /* spent before the line is driven */
			if
			:: drive(n); openedSent[n] = true
			:: drive(n); failedSent[n] = true   /* the sense line did not confirm */
			:: failedSent[n] = true             /* the line could not be driven */
			fi
		:: grantSent[n] && (!fresh[n] || aged[n]) ->
			/* Late or repeated: dropped, if it was never driven with this nonce. */
			if
			:: fresh[n] -> fresh[n] = false; droppedSent[n] = true
			:: !fresh[n] && restarted -> droppedSent[n] = true /* nobody knows any more whether it was driven */
			:: else
			fi
		:: else
		fi }
	/* Time passes for a claim. */
	:: atomic { made > 0 -> select(n : 0 .. NONCES-1); if :: n < made -> aged[n] = true :: else fi }
	/* A restart: the memory is gone. */
	:: atomic { made > 0 && made < NONCES -> fresh[made-1] = false; restarted = true }
	od
}
