// The lease protocol once more, small enough for spin to visit every state of it.
//
// The world is N contenders, one record and a clock that ticks. Anything may happen in any order: a
// write lands now, later or never; its answer comes now, later or never; a contender crashes, or is
// frozen (it does nothing while time passes), or its wall clock is set. What the numbers mean is
// kept, and nothing else: a version or token is the record's current one or a dead one, and every
// age stops counting where it can make no difference any more.
//
// What is claimed, one flag each:
//   LEADERS  at most one contender believes (L4)
//   NAMED    the record names whoever believes: a holder stops before anyone else may start (L4)
//   ONCE     belief that has ended is not revived within its tenure (L4)
//   FENCE    a write guarded by a tenure's token commits only while that tenure holds the lease
//            (L2, L5). No clock is involved: it must hold whatever clocks do.
// L1, L3 and L7 are the text of the model itself: break one of its rules (BROKEN), and a claim
// fails. L6 is in its freedom: nothing here ever has to happen, but time passes.
//
// Left out: the monitor, suspension, notBefore, deleted records. Time is coarser than in src, and
// on the dangerous side: a lease may be taken at its very expiry, not only after it. A contender
// observes from the moment of a write, as if its answer took no time. Messages of one contender do
// not outnumber SLOTS (of the first; the others have one), but each may be as late as it likes.
//
// Why proving the clock once, at the acquisition, suffices: clock-check.md. In the model a checked
// clock is 0 to SKEW ticks ahead of true time. With STEPS the first contender's clock is set at
// will, also far out of these bounds, and is unchecked until an answer proves it.

#ifndef N
#define N 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef BROKEN
#define BROKEN 0
#endif
#define D 3            /* leaseDuration, in ticks */
#define T 1            /* the tolerance */
#define R (D - T)      /* renewDeadline */
#ifndef SKEW
#define SKEW T         /* how far two checked clocks differ; more than T is a broken promise */
#endif

/* Wall clocks: 0 to SKEW ticks ahead of true time, or out of bounds. */
#define AHEAD (SKEW + 1)
#define BEHIND (SKEW + 2)
#define FUTURE (D + SKEW + 1) /* of expiries: no clock in bounds will see it soon */

#define IDLE 0  /* a contender's phase: no identity */
#define TRY 1   /* an identity, of which something has been sent */
#define HOLD 2  /* a tenure; ages to R and is over then, noticed or not */

#define REQUEST 1 /* a message: a write on its way */
#define MINE 2    /* an answer whose item carries the sender's identity (applied, or L7) */
#define OTHER 3   /* an answer whose item does not */

#define CLOCK 1   /* acquire if vacant or expired: for checked clocks */
#define VACANT 2  /* acquire if vacant */
#define AS_READ 3 /* acquire if the version is the one that was watched */
#define RENEW 4   /* if version and holder are the ones known */
#define RELEASE 5 /* the same */

typedef Message {
  unsigned is : 2;
  unsigned kind : 3;
  unsigned age : 2;    /* since its base, by its sender's elapsed, while anyone may count it */
  unsigned left : 3;   /* of a claim: true time until the expiry that it writes */
  unsigned now : 3;    /* of CLOCK: its :now, ahead of true time */
  bit current;         /* its version is the record's */
  bit live;            /* its identity is its sender's present one */
  bit stepped          /* the sender's clock has been set since */
};

typedef Contender {
  unsigned phase : 2;
  unsigned age : 2;    /* of belief, by elapsed */
  unsigned clock : 3;
  unsigned line : 3;   /* where its stamps are, ahead of true time, plus 1; 0: nowhere, or behind */
  bit checked;         /* the clock is */
  bit knows;           /* the record's current version, as that of a write of its own */
  bit token;           /* its last tenure's token is the record's current one */
  bit begun;           /* ghost: it has had a tenure, whose guarded writes may still be under way */
  bit over;            /* ghost: that tenure no longer holds the lease */
  bit ended;           /* ghost: belief in the tenure has been false */
  Message m[SLOTS]
};

Contender c[N];

/* The record. */
unsigned holder : 2;   /* 0: vacant; else a contender's number, plus 1 */
bit live;              /* the identity in it is that contender's present one */
bit stepped;           /* the clock of that contender has been set since the stamp */
unsigned age : 2;      /* of the attempt that wrote it, if live */
unsigned left : 3;     /* true time until expireTime */
unsigned unchanged : 2; /* how long its version has stood, held */

byte x, y;             /* for loops; 0 between steps */

#define believes(i) (c[i].phase == HOLD && c[i].age < R)
#define good(i) (c[i].clock <= SKEW)
#define wall(i) (good(i) -> c[i].clock : (c[i].clock == AHEAD -> FUTURE - 1 : 0))
#define full(i) (c[i].m[0].is != 0 && (i > 0 || c[i].m[SLOTS - 1].is != 0))
#define name 65 +

/* Lines of a counter-example's story. With COUNT, pan counts them, to show that all are reached. */
#ifdef COUNT
c_decl {
  static unsigned long told[1000];
  __attribute__((destructor)) static void report(void) {
    for (int at = 0; at < 1000; at++) if (told[at]) printf("told %d %lu\n", at, told[at]);
  }
}
#define tell(...) c_code { told[__LINE__]++; }
#else
#define tell(...) printf(__VA_ARGS__)
#endif
#define when(condition, ...) if :: (condition) -> __VA_ARGS__ :: else fi

/* Rules to break, one at a time: -DBROKEN=name. */
#define RENEW_WITHOUT_VERSION 1
#define RELEASE_WITHOUT_CONDITION 2
#define GUARD_WITHOUT_CONDITION 3
#define UNCHECKED_CLOCK_TAKES 4
#define UNPROVEN_ACQUISITION_COUNTS 5
#define BELIEF_FROM_ANSWER 6
#define LATE_SUCCESS_REVIVES 7
#define NO_NEW_TOKEN 8
#define broken(rule) (BROKEN == rule)

#define renewable(i, k) (broken(RENEW_WITHOUT_VERSION) -> \
  holder == i + 1 && live == c[i].m[k].live : c[i].m[k].current)
#define releasable(i, k) (broken(RELEASE_WITHOUT_CONDITION) || c[i].m[k].current)
#define guarded(i) (broken(GUARD_WITHOUT_CONDITION) -> \
  c[i].begun : holder == i + 1 && c[i].token)
#define judges(i) (broken(UNCHECKED_CLOCK_TAKES) || c[i].checked)
#define proven(i, k) (broken(UNPROVEN_ACQUISITION_COUNTS) || good(i) && !c[i].m[k].stepped)

#define applies(i, k) ( \
  c[i].m[k].kind == CLOCK && (holder == 0 || left == 0 || left <= c[i].m[k].now) || \
  c[i].m[k].kind == VACANT && holder == 0 || \
  c[i].m[k].kind == AS_READ && c[i].m[k].current || \
  c[i].m[k].kind == RENEW && renewable(i, k) || \
  c[i].m[k].kind == RELEASE && releasable(i, k))

/* Can only be refused, now and ever: as good as lost when nobody waits for its answer. */
#define doomed(i, k) (c[i].m[k].is == REQUEST && !c[i].m[k].live && !applies(i, k) && \
  c[i].m[k].kind > VACANT)

inline forget(i, k) {
  c[i].m[k].is = 0; c[i].m[k].kind = 0; c[i].m[k].age = 0; c[i].m[k].left = 0;
  c[i].m[k].now = 0; c[i].m[k].current = 0; c[i].m[k].live = 0; c[i].m[k].stepped = 0
}

inline lose(i, k) { tell("The network loses a message of %c\n", name i); forget(i, k) }

inline forget_doomed() {
  for (x : 0 .. N - 1) {
    for (y : 0 .. SLOTS - 1) { when(doomed(x, y), forget(x, y)) }
  }; x = 0; y = 0
}

/* A claim carries a stamp: the larger of the wall clock and the line of the stamps before. */
inline send(i, what, version) {
  x = (c[i].m[0].is == 0 -> 0 : SLOTS - 1);
  c[i].m[x].is = REQUEST; c[i].m[x].kind = what; c[i].m[x].current = version;
  when(what <= AS_READ, c[i].phase = TRY);
  when(what != RELEASE,
    c[i].m[x].live = 1;
    when(c[i].clock != BEHIND && c[i].line <= wall(i), c[i].line = wall(i) + 1);
    c[i].m[x].left = (c[i].line == 0 -> 0 :
      (D + c[i].line > FUTURE -> FUTURE : D + c[i].line - 1));
    c[i].m[x].now = (what == CLOCK -> wall(i) : 0)); x = 0
}

/* The identity is over. What was sent in its name may still land; nobody will count it. */
inline end(i) {
  c[i].phase = IDLE; c[i].age = 0; c[i].knows = 0; c[i].line = 0; c[i].ended = 0;
  when(holder == i + 1, live = 0; age = 0; stepped = 0);
  for (x : 0 .. SLOTS - 1) {
    when(c[i].m[x].is == REQUEST, c[i].m[x].live = 0; c[i].m[x].age = 0; c[i].m[x].stepped = 0);
    when(c[i].m[x].is > REQUEST, forget(i, x))
  }
  forget_doomed()
}

/* Every write makes all versions that anybody knows dead ones. */
inline written() {
  unchanged = 0;
  for (x : 0 .. N - 1) {
    c[x].knows = 0;
    for (y : 0 .. SLOTS - 1) { c[x].m[y].current = 0 }
  }
}

/* An acquisition makes all tokens dead ones (L2), also its own contender's former one (L5). */
inline acquired(i) {
  for (x : 0 .. N - 1) {
    c[x].token = c[x].token && broken(NO_NEW_TOKEN) && x == i && holder == i + 1;
    c[x].over = c[x].begun
  }
}

/* A write reaches the store, which applies or refuses it, and answers. */
inline land(i, k) {
  if
  :: !applies(i, k) ->
     if
     :: c[i].m[k].live && holder == i + 1 && live ->
        tell("The store refuses a write of %c, and shows one of its own\n", name i);
        c[i].m[k].is = MINE; c[i].m[k].age = age; c[i].m[k].current = 1;
        c[i].m[k].stepped = c[i].m[k].stepped | stepped
     :: else ->
        tell("The store refuses a write of %c\n", name i);
        c[i].m[k].is = OTHER; c[i].m[k].age = 0; c[i].m[k].current = 0
     fi
  :: applies(i, k) && c[i].m[k].kind == RELEASE ->
     tell("The store applies a release of %c: vacant\n", name i);
     holder = 0; live = 0; stepped = 0; age = 0; left = 0;
     written();
     for (x : 0 .. N - 1) { c[x].over = c[x].begun }
     c[i].m[k].is = OTHER
  :: applies(i, k) && c[i].m[k].kind != RELEASE ->
     if
     :: c[i].m[k].kind == RENEW -> tell("The store applies a renewal of %c\n", name i)
     :: c[i].m[k].kind != RENEW && holder == 0 ->
        tell("The store gives the vacant lease to %c\n", name i)
     :: c[i].m[k].kind != RENEW && holder != 0 ->
        tell("The store gives the lease of %c to %c\n", name holder - 1, name i)
     fi;
     when(c[i].m[k].kind != RENEW, acquired(i));
     holder = i + 1; live = c[i].m[k].live; stepped = c[i].m[k].stepped;
     age = c[i].m[k].age; left = c[i].m[k].left;
     written();
     c[i].m[k].is = MINE; c[i].m[k].current = 1
  fi;
  c[i].m[k].kind = 0; c[i].m[k].left = 0; c[i].m[k].now = 0;
  when(!c[i].m[k].live, forget(i, k));
  forget_doomed();
  check()
}

/* An answer arrives. It is a sample of the clock, too, unless it was slow (`proves` is 0). */
inline arrive(i, k, proves) {
  when(proves && good(i) && !c[i].m[k].stepped, c[i].checked = 1);
  when(broken(BELIEF_FROM_ANSWER), c[i].m[k].age = 0);
  when(broken(LATE_SUCCESS_REVIVES) && c[i].phase == HOLD && c[i].m[k].is == MINE,
    c[i].age = c[i].m[k].age);
  if
  :: c[i].phase == HOLD && !believes(i) ->
     tell("%c is answered too late, and has stopped\n", name i); end(i)
  :: believes(i) && c[i].m[k].is == MINE ->
     tell("%c is answered: it holds on\n", name i);
     c[i].knows = c[i].knows | c[i].m[k].current;
     when(c[i].m[k].age < c[i].age, c[i].age = c[i].m[k].age);
     forget(i, k)
  :: believes(i) && c[i].m[k].is == OTHER ->
     tell("%c learns that it has lost the lease\n", name i); end(i)
  :: c[i].phase == TRY && c[i].m[k].is == OTHER ->
     tell("%c is refused\n", name i); forget(i, k)
  :: c[i].phase == TRY && c[i].m[k].is == MINE && proves && proven(i, k) && c[i].m[k].age < R ->
     tell("%c is answered: it leads\n", name i);
     c[i].phase = HOLD; c[i].age = c[i].m[k].age; c[i].knows = c[i].m[k].current;
#ifdef FENCE
     c[i].token = (holder == i + 1 && live); c[i].begun = 1; c[i].over = !c[i].token;
#endif
     forget(i, k)
  :: c[i].phase == TRY && c[i].m[k].is == MINE && !(proves && proven(i, k) && c[i].m[k].age < R) ->
     tell("%c has it, too late or by an unproven clock: it renews or undoes it\n", name i);
     c[i].knows = c[i].knows | c[i].m[k].current;
     forget(i, k)
  fi;
  check()
}

inline check() {
  for (x : 0 .. N - 1) {
#ifdef LEADERS
    for (y : 0 .. N - 1) { assert(x == y || !(believes(x) && believes(y))) }
#endif
#ifdef NAMED
    assert(!believes(x) || holder == x + 1 && live);
#endif
#ifdef ONCE
    assert(!(believes(x) && c[x].ended));
#endif
    skip
  }; x = 0; y = 0
}

/* One tick of i's elapsed. */
inline elapse(i) {
  when(c[i].phase == HOLD && c[i].age == R - 1,
    c[i].ended = 1; tell("%c's belief ends\n", name i));
  when(c[i].phase == HOLD && c[i].age < R, c[i].age++);
  for (y : 0 .. SLOTS - 1) {
    when(c[i].m[y].live && c[i].m[y].is != OTHER && c[i].m[y].age < R, c[i].m[y].age++)
  }
  when(holder == i + 1 && live && age < R, age++)
}

/* i's wall clock is set. Forward is elapsed; back is not; either way it is unchecked. */
inline set_clock(i, to) {
  when(!(to == BEHIND || c[i].clock == AHEAD || good(i) && to < c[i].clock),
    elapse(i);
    when(c[i].line > 0 && c[i].line < FUTURE, c[i].line++);
    when(!(good(i) && to <= SKEW), for (x : 1 .. R) { elapse(i) }));
  c[i].clock = to; c[i].checked = 0;
  for (y : 0 .. SLOTS - 1) { c[i].m[y].stepped = c[i].m[y].live }
  when(holder == i + 1 && live, stepped = 1); x = 0; y = 0
}

#define contends(i) (c[i].phase != HOLD && !c[i].knows && !full(i))
#define may_set(i, to) (i == 0 && c[i].clock != to)

proctype Contend(byte i) {
  do
  :: d_step { contends(i) && judges(i) ->
       tell("%c sends: acquire if vacant or expired\n", name i); send(i, CLOCK, 0) }
  :: d_step { contends(i) && !judges(i) ->
       tell("%c sends, its clock unchecked: acquire if vacant\n", name i); send(i, VACANT, 0) }
  :: d_step { contends(i) && unchanged == D ->
       tell("%c has watched long enough, and sends: acquire as read\n", name i);
       send(i, AS_READ, 1) }
  :: d_step { (c[i].phase == TRY && c[i].knows || believes(i)) && !full(i) ->
       tell("%c sends: renew\n", name i); send(i, RENEW, c[i].knows) }
  :: d_step { c[i].knows && !full(i) ->
       tell("%c stops, and sends: release\n", name i); end(i); send(i, RELEASE, 1) }
  :: d_step { c[i].phase == IDLE && holder == i + 1 && !full(i) ->
       tell("%c reads that a late write of its own was applied, and sends: release\n", name i);
       send(i, RELEASE, 1) }
  :: d_step { believes(i) || c[i].phase == TRY ->
       tell("%c crashes, or gives up\n", name i); end(i) }
  :: d_step { c[i].phase == HOLD && !believes(i) ->
       tell("%c thaws, or just looks: its belief is over\n", name i); end(i) }
#ifdef FENCE
  :: d_step { guarded(i) ->
       tell("The store commits a guarded write of %c\n", name i); assert(!c[i].over) }
#endif
#ifdef STEPS
  :: d_step { may_set(i, 0) -> tell("%c's clock is set right\n", name i); set_clock(i, 0) }
  :: d_step { may_set(i, SKEW) ->
       tell("%c's clock is set to +%d\n", name i, SKEW); set_clock(i, SKEW) }
  :: d_step { may_set(i, AHEAD) ->
       tell("%c's clock is set far ahead\n", name i); set_clock(i, AHEAD) }
  :: d_step { may_set(i, BEHIND) ->
       tell("%c's clock is set far back\n", name i); set_clock(i, BEHIND) }
  :: d_step { i == 0 && c[i].m[0].is > REQUEST -> arrive(i, 0, 0) }
#endif
  :: d_step { c[i].m[0].is > REQUEST -> arrive(i, 0, 1) }
  :: d_step { c[i].m[0].is == REQUEST -> land(i, 0) }
  :: d_step { c[i].m[0].is != 0 -> lose(i, 0) }
#if SLOTS == 2
  :: d_step { c[i].m[1].is > REQUEST -> arrive(i, 1, 1) }
  :: d_step { c[i].m[1].is == REQUEST -> land(i, 1) }
  :: d_step { c[i].m[1].is != 0 -> lose(i, 1) }
#endif
  od
}

proctype Time() {
  do
  :: d_step {
       tell("One tick passes\n");
       for (x : 0 .. N - 1) {
         elapse(x);
         for (y : 0 .. SLOTS - 1) {
           when(c[x].m[y].left > 0, c[x].m[y].left--); when(c[x].m[y].now > 0, c[x].m[y].now--)
         }
       }
       x = 0; y = 0; left = (left > 0 -> left - 1 : 0);
       unchanged = (holder != 0 && unchanged < D -> unchanged + 1 : unchanged)
     }
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. N - 1) {
      c[i].checked = 1;
      if
      :: c[i].clock = 0
      :: N == 2 || i == 0 || c[i - 1].clock == SKEW -> /* three are alike: sorted */
         tell("%c's clock is %d ahead\n", name i, SKEW);
         c[i].clock = SKEW
#ifdef STEPS
      :: i == 0 -> tell("A's clock is far ahead\n"); c[i].clock = AHEAD
      :: i == 0 -> tell("A's clock is far behind\n"); c[i].clock = BEHIND
#endif
      fi;
      run Contend(i)
    }
    i = 0;
#ifdef STEPS
    c[0].checked = 0;
#endif
    run Time()
  }
}
