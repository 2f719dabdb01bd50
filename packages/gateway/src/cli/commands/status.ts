/** `spillway status`: prints the state of the whole fleet. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import type { FleetValues } from '../operate/fleet-connection.js'
import { OPERATING_OPTIONS } from '../operate/operate-options.js'
import { noArguments, parseArguments, readDuration, UsageError } from '../parse-args.js'

const OPTIONS = {
  json: {
    type: 'boolean',
    about: 'write everything as JSON to stdout; with --watch, one line per update',
  },
  watch: { type: 'boolean', short: 'w', about: 'repeat until Ctrl-C' },
  every: { type: 'string', value: 'TIME', about: 'interval of --watch. Default: 2s' },
  ...OPERATING_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

const DEFAULT_INTERVAL_MS = 2_000
/** Moves the cursor to the top left and clears the screen. */
const CLEAR = '\x1b[H\x1b[2J'

export const statusCommand: CommandRow = {
  name: 'status',
  summary: 'Show pods, breakers, limits and keys of the whole fleet',
  usage: ['[--json] [--watch [--every TIME]] [--config FILE | --redis URL | --admin URL]'],
  options: OPTIONS,
  notes: 'Exit code 0: the store is reachable. 3: it is not.',
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    noArguments(positionals)
    if (values.every !== undefined && !values.watch) throw new UsageError('--every: needs --watch')
    const everyMs =
      values.every === undefined ? DEFAULT_INTERVAL_MS : readDuration('--every', values.every)
    return showStatus(values, values.watch ? everyMs : undefined)
  },
}

interface StatusValues extends FleetValues {
  readonly json?: boolean | undefined
}

/** Prints the state of the fleet once, or every `everyMs` until a signal. */
async function showStatus(
  { json, config, redis, prefix, admin }: StatusValues,
  everyMs: number | undefined,
): Promise<number> {
  const { openFleetConnection } = await import('../operate/fleet-connection.js')
  const { statusText } = await import('../operate/status-text.js')
  const { operator, guards, close } = await openFleetConnection({ config, redis, prefix, admin })
  const stopped = new AbortController()
  const stop = () => stopped.abort()
  if (everyMs !== undefined) process.on('SIGINT', stop).on('SIGTERM', stop)
  try {
    do {
      const report = await operator.fleet()
      const clear = everyMs !== undefined && process.stdout.isTTY ? CLEAR : ''
      const text = json ? JSON.stringify(report) : statusText(report, guards, Date.now())
      process.stdout.write(json ? `${text}\n` : clear + text)
      if (everyMs !== undefined) await sleep(everyMs, undefined, stopped).catch(() => {})
    } while (everyMs !== undefined && !stopped.signal.aborted)
    return EXIT.ok
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
    await close()
  }
}
