/** `spillway doctor`: checks the environment of a gateway for problems. */
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows, STORE_OPTIONS } from '../command.js'
import { noArguments, parseArguments } from '../parse-args.js'

const OPTIONS = {
  ...STORE_OPTIONS,
  json: { type: 'boolean', about: 'write every finding as JSON to stdout' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const doctorCommand: CommandRow = {
  name: 'doctor',
  summary: 'Check configuration and Redis, and suggest fixes',
  usage: ['[--config FILE] [--redis URL] [--json]'],
  options: OPTIONS,
  notes: `Checks the configuration, the version of Node, and for each Redis server: version, topology, latency, clock,
eviction policy, persistence, memory and permissions of the user.

Exit code 0: no check failed; there may be warnings. 1: at least one check failed. 3: only Redis is unreachable.`,
  async run(args) {
    const { values, positionals } = parseArguments(args, OPTIONS)
    noArguments(positionals)
    const { examine } = await import('../doctor/examine.js')
    const { findingsText, UNREACHABLE } = await import('../doctor/finding.js')
    const findings = await examine(values)
    process.stdout.write(values.json ? `${JSON.stringify(findings)}\n` : findingsText(findings))
    const failed = findings.filter(({ verdict }) => verdict === 'fail')
    if (failed.length === 0) return EXIT.ok
    return failed.every(({ of }) => of === UNREACHABLE) ? EXIT.unavailable : EXIT.failure
  },
}
