/** `spillway audit`: prints operator actions from the store. */
import type { AuditEntry } from 'spillway/operate'
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { formatDuration } from '../format-duration.js'
import { OPERATING_OPTIONS } from '../operate/operate-options.js'
import { noArguments, parseArguments, readDuration } from '../parse-args.js'
import { table } from '../text-table.js'

const OPTIONS = {
  since: { type: 'string', value: 'TIME', about: 'only the last TIME, such as 1d. Default: all' },
  json: { type: 'boolean', about: 'write one line of JSON for each action to stdout' },
  ...OPERATING_OPTIONS,
  ...HELP_OPTION,
} as const satisfies OptionRows

export const auditCommand: CommandRow = {
  name: 'audit',
  summary: 'Show what operators did, when and from where',
  usage: ['[--since TIME] [--json] [--config FILE | --redis URL | --admin URL]'],
  options: OPTIONS,
  notes:
    'The store keeps the last 1,000 actions for 30 days (admin.auditMs), refused ones included.',
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    noArguments(positionals)
    const { since, json, ...where } = values
    const period = since === undefined ? {} : { sinceMs: readDuration('--since', since) }
    const { openFleetConnection } = await import('../operate/fleet-connection.js')
    const { operator, close } = await openFleetConnection(where)
    try {
      const entries = await operator.audit(period)
      process.stdout.write(json ? entries.map(toLine).join('') : auditText(entries))
      return EXIT.ok
    } finally {
      await close()
    }
  },
}

function toLine({ at, ...entry }: AuditEntry): string {
  return `${JSON.stringify({ at: new Date(at).toISOString(), ...entry })}\n`
}

export function auditText(entries: readonly AuditEntry[]): string {
  if (entries.length === 0) return 'No actions of operators are recorded.\n'
  const heads = ['time', 'by', 'from', 'action', 'guard', 'arguments', 'result']
  const rows = entries.map((entry) =>
    [
      new Date(entry.at).toISOString(),
      entry.by || '-',
      entry.from ?? '-',
      entry.action,
      entry.guard || '-',
      argumentsOf(entry) || '-',
      entry.result === 'done' ? 'done' : `refused: ${entry.message}`,
    ].map(plain),
  )
  return `${table(heads, rows)}\n`
}

function argumentsOf({ lane, key, unit, limit, forMs }: AuditEntry): string {
  const facts = {
    lane,
    key,
    unit,
    limit,
    for: forMs === undefined ? undefined : formatDuration(forMs),
  }
  const given = Object.entries(facts).filter(([, value]) => value !== undefined)
  return given.map(([name, value]) => `${name}=${value}`).join(' ')
}

/** Operators choose these texts; control characters would reach the terminal. */
function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ')
}
