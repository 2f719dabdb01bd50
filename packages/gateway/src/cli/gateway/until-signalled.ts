/** Stops a gateway on SIGTERM and SIGINT, and waits for its end. */

/** A terminal sends a signal to every process; a parent process may pass on a second copy. */
const ECHO_MS = 500

interface Stop {
  /** Called at the first signal: running requests may finish. */
  drain(): Promise<void>
  /** Called at the second signal: ends at once. */
  end(): Promise<void>
}

/** Resolves when `ended` does, or when a drain is over. */
export function untilSignalled(ended: Promise<void>, { drain, end }: Stop): Promise<void> {
  return new Promise((resolve, reject) => {
    let firstMs: number | undefined
    // An operator may have drained the gateway already.
    ended.then(resolve, reject)
    const stop = (signal: NodeJS.Signals) => {
      const nowMs = performance.now()
      if (firstMs === undefined) {
        firstMs = nowMs
        process.stderr.write(
          `\n${signal}: finishing running requests; repeat the signal to stop at once\n`,
        )
        drain().then(resolve, reject)
      } else if (nowMs - firstMs > ECHO_MS) {
        end().catch(reject)
      }
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  })
}
