/** `spillway doctor`: what is wrong around a gateway, before it matters. */
import { type CommandRow, configOption, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { noArguments, parseArguments } from '../parse-args.js'

const OPTIONS = {
  ...configOption('the configuration. Default: spillway.yaml, or $REDIS_URL alone'),
  json: { type: 'boolean', about: 'write every finding as JSON to stdout' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const doctorCommand: CommandRow = {
  name: 'doctor',
  summary: 'Check configuration and Redis, and suggest fixes',
  usage: ['[--config FILE] [--json]'],
  options: OPTIONS,
  notes: `Looks at: the configuration, Node, and of every Redis server its version, topology, latency, clock,
eviction policy, persistence, memory, and whether its user may do what Spillway does.

Exit code 0: nothing has failed, though there may be warnings. 1: something has.`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    noArguments(positionals)
    const { examine } = await import('../doctor/examine.js')
    const { findingsText } = await import('../doctor/finding.js')
    const findings = await examine(values.config)
    process.stdout.write(values.json ? `${JSON.stringify(findings)}\n` : findingsText(findings))
    return findings.some(({ verdict }) => verdict === 'fail') ? EXIT.failure : EXIT.ok
  },
}
