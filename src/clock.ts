// The door to time. Nothing else reads a clock or sets a timer.
//
// Two clocks, because each answers what the other cannot. The wall clock can be compared across
// machines but may be wrong, or be set. The monotonic clock cannot be set but means nothing
// elsewhere, and may stand still while a machine is frozen.

/** Both clocks, read at one moment. */
export interface Reading {
  /** Milliseconds since the epoch, as this machine believes. */
  readonly wallMs: number;
  /** Milliseconds since an arbitrary moment; never goes back. */
  readonly monotonicMs: number;
}

/** A timer that has been set. */
export interface Timer {
  /** Keeps it from firing. Does nothing when it has fired. */
  cancel(): void;
}

/** Both clocks of a machine, and its timers. */
export interface Clock {
  /** Reads both clocks at one moment. */
  read(): Reading;
  /**
   * Calls `run` once, after `delayMs`, or any time later: the process may have been frozen, or the
   * event loop busy.
   */
  setTimer(delayMs: number, run: () => void): Timer;
}

/** setTimeout takes a 32-bit delay, and fires at once when it is given more. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** Both clocks are read at one moment when no more than this passes meanwhile. */
const TOGETHER_MS = 1;
const READ_ATTEMPTS = 5;

export const systemClock: Clock = {
  read() {
    for (let attempt = 1; ; attempt++) {
      // In this order, so that belief counts from no later than the time that is written.
      const monotonicMs = performance.now();
      const wallMs = Date.now();
      const tookMs = performance.now() - monotonicMs;
      // Descheduled in between, a process would take that for a step of its wall clock.
      if (tookMs < TOGETHER_MS || attempt === READ_ATTEMPTS) return { wallMs, monotonicMs };
    }
  },

  setTimer(delayMs, run) {
    let leftMs = Math.max(0, delayMs);
    let handle: NodeJS.Timeout;
    const arm = () => {
      const stepMs = Math.min(leftMs, LONGEST_TIMEOUT_MS);
      leftMs -= stepMs;
      handle = setTimeout(() => (leftMs > 0 ? arm() : run()), stepMs);
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delayMs`, or as soon as `signal` aborts; never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const wake = () => {
      timer.cancel();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = clock.setTimer(delayMs, wake);
    signal?.addEventListener('abort', wake);
  });
}
