/** Logs: a line of JSON for each request and for what changes. No secrets, no bodies. */
import { type Logger, pino } from 'pino'
import type { Clock, SpillwayEvent } from 'spillway'
import { systemClock } from 'spillway/internal'
import type { RequestRecord } from '../request/record.js'
import { Lines } from './lines.js'
import type { Scrub } from './scrub.js'

/** Receives log entries of a gateway. */
export interface GatewayLog {
  /** Called once for each finished request. */
  request(record: RequestRecord): void
  /** Called with each event of the library. */
  event(event: SpillwayEvent): void
  /** Called with an unexpected error. */
  failure(error: unknown): void
  /** Called with changes that are important for operators. */
  notice?(level: 'info' | 'error', message: string, facts: object): void
  /** Sets the lowest level that is written, after a reload. */
  setLevel?(level: string): void
  /** Writes the remaining lines. */
  close(): void
}

/**
 * Creates a log on standard output: a line of JSON for each request and event. `scrub` removes secrets from
 * texts that come from outside. `isShared`: other processes write to the same output. Default: false. `clock`: the time
 * in the lines, and between writes. Default: that of the system.
 *
 * @example
 * const gateway = await createGateway(config, { log: createLog('warn') })
 */
export function createLog(
  level: string,
  scrub: Scrub = (text) => text,
  {
    isShared = false,
    clock = systemClock,
  }: { isShared?: boolean; clock?: Pick<Clock, 'now' | 'wallMs' | 'schedule'> } = {},
): GatewayLog {
  const lines = new Lines({ isShared, clock })
  const scrubbed = { write: (line: string) => lines.write(scrub(line)) }
  const timestamp = () => `,"time":${clock.wallMs()}`
  const logger = pino({ level, base: null, timestamp, serializers: { err: errorFacts } }, scrubbed)
  const logs = { info: false, warn: false }
  const setLevel = (next: string) => {
    logger.level = next
    logs.info = logger.isLevelEnabled('info')
    logs.warn = logger.isLevelEnabled('warn')
  }
  setLevel(level)
  return {
    request(record) {
      if (record.status >= 500 ? logs.warn : logs.info) lines.write(lineOf(record, clock.wallMs()))
    },
    event: (event) => logEvent(logger, event),
    failure(error) {
      logger.error({ err: error }, 'internal error')
      // The process may end right after this line.
      lines.flush()
    },
    notice: (worth, message, facts) => logger[worth](facts, message),
    setLevel,
    close: () => lines.close(),
  }
}

/** Built as one string, in a third of the time that pino takes for these fields. */
function lineOf(record: RequestRecord, atMs: number): string {
  const level = record.status >= 500 ? pino.levels.values.warn : pino.levels.values.info
  return `{"level":${level},"time":${atMs},"msg":"request",${JSON.stringify(record).slice(1)}\n`
}

const WORTH_A_LINE =
  /^(breaker\.(?!refused)|key\.|store\.|callback\.|operator\.|pod\.|job-queue\.|job\.dead|lanes\.full|limit\.learned|guard\.no-timeout)/

/** Changes that affect all requests, in contrast to events of a single request. */
function logEvent(logger: Logger, event: SpillwayEvent): void {
  if (!WORTH_A_LINE.test(event.type)) return
  const { type, ...facts } = event
  const { error } = facts as { error?: unknown }
  // Without the store no limit is shared, which is also logged at the level `warn`.
  const level = type === 'store.unreachable' ? 'warn' : 'info'
  logger[level](error === undefined ? facts : { ...facts, error: errorFacts(error) }, type)
}

/** Other properties of an error are left out: they may contain a request with its headers and body. */
function errorFacts(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error }
  const { name, message, stack } = error
  return { type: name, code: (error as { code?: unknown }).code, message, stack }
}
