/** Parses the options of the command line. */
import { parseArgs } from 'node:util'

export type Request =
  | { kind: 'run'; fast: boolean; seed: number }
  | { kind: 'help' }
  | { kind: 'mistake'; message: string }

export const HELP = `One overloaded pod, first without and then with protection.

  npm run demo            live, about 23 seconds; Ctrl-C ends it
  npm run demo -- --fast  the same on a virtual clock: only the result, at once

  --fast        do not wait
  --seed N      other clients at other moments (a whole number; default 1);
                with --fast, the same seed gives the same result
  --help, -h    this text
`

export function readArguments(args: readonly string[]): Request {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        fast: { type: 'boolean', default: false },
        seed: { type: 'string', default: '1' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) return { kind: 'help' }
    if (!/^\d{1,9}$/.test(values.seed)) {
      return { kind: 'mistake', message: `--seed: must be a whole number, got "${values.seed}"` }
    }
    return { kind: 'run', fast: values.fast, seed: Number(values.seed) }
  } catch (error) {
    // Only the first sentence of Node's message describes the mistake.
    const [message] = (error as Error).message.split('. ')
    return { kind: 'mistake', message: message as string }
  }
}
