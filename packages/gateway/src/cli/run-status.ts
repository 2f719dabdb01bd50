/** Asks how the fleet stands, once or again and again, and shows it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { EXIT } from './command-row.js'
import { openOperating } from './operating.js'
import { statusText } from './status-text.js'

interface StatusValues {
  readonly json?: boolean | undefined
  readonly config?: string | undefined
  readonly admin?: string | undefined
}

const CLEAR = '\x1b[H\x1b[2J'

export async function runStatus(
  { json, ...where }: StatusValues,
  everyMs: number | undefined,
): Promise<number> {
  const { operator, guards, close } = await openOperating(where)
  const stopped = new AbortController()
  const stop = () => stopped.abort()
  if (everyMs !== undefined) process.on('SIGINT', stop).on('SIGTERM', stop)
  try {
    do {
      const report = await operator.fleet()
      const clear = everyMs !== undefined && process.stdout.isTTY ? CLEAR : ''
      process.stdout.write(
        json ? `${JSON.stringify(report)}\n` : `${clear}${statusText(report, guards)}`,
      )
      if (everyMs !== undefined) await sleep(everyMs, undefined, stopped).catch(() => {})
    } while (everyMs !== undefined && !stopped.signal.aborted)
    return EXIT.ok
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
    await close()
  }
}
