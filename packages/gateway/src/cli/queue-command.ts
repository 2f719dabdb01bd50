/** `spillway queue`, as typed. */
import { didYouMean, parseWords, readWhole, UsageError } from './usage.js'

interface Common {
  readonly kind: 'queue'
  /** Nothing: `spillway.yaml`, if there is one here. */
  readonly config: string | undefined
  /** In place of the configuration's. */
  readonly redis: string | undefined
  readonly prefix: string | undefined
  readonly json: boolean
}

export type QueueCommand = Common &
  (
    | { readonly verb: 'ls' }
    | {
        readonly verb: 'show'
        readonly name: string
        /** A job; nothing: the queue, and its oldest dead letters. */
        readonly id: string | undefined
        readonly count: number
      }
    | {
        readonly verb: 'retry' | 'drop'
        readonly name: string
        /** Nothing: all dead letters. */
        readonly id: string | undefined
        readonly yes: boolean
      }
  )

export type QueueWish = QueueCommand | { readonly kind: 'help'; readonly of: 'queue' }

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  redis: { type: 'string' },
  prefix: { type: 'string' },
  count: { type: 'string', short: 'n' },
  yes: { type: 'boolean', short: 'y' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

const VERBS = ['ls', 'show', 'retry', 'drop'] as const
const SHOWN = 20

export function readQueue(args: readonly string[]): QueueWish {
  const { values, positionals } = parseWords(args, OPTIONS)
  if (values.help) return { kind: 'help', of: 'queue' }
  const [word, name, id, ...more] = positionals
  const verb = VERBS.find((each) => each === word)
  if (verb === undefined) {
    if (word === undefined) throw new UsageError(`queue what? ${VERBS.join(', ')}`)
    throw new UsageError(`unknown command "queue ${word}"${didYouMean(word, VERBS)}`)
  }
  const { config, redis, prefix } = values
  const common = { kind: 'queue', config, redis, prefix, json: values.json === true } as const
  if (verb === 'ls') {
    if (name !== undefined) throw new UsageError(`what is "${name}"? queue ls takes no arguments`)
    return { ...common, verb }
  }
  if (name === undefined) throw new UsageError(`queue ${verb}: of which queue? Name it`)
  if (more.length > 0)
    throw new UsageError(`what is "${more.join(' ')}"? One job at a time, or all`)
  if (verb === 'show') {
    const count = readWhole('--count', values.count, { min: 0, max: 1_000 }) ?? SHOWN
    return { ...common, verb, name, id, count }
  }
  return { ...common, verb, name, id, yes: values.yes === true }
}

export const QUEUE_HELP = `spillway queue: looks after the jobs that wait in Redis.

  spillway queue ls                      all queues of the configuration, and how they stand
  spillway queue show NAME [ID]          one queue and its dead letters, the oldest first; or one job
  spillway queue retry NAME [ID]         dead letters go back to work: one, or all
  spillway queue drop NAME [ID]          forgets dead letters: one, or all

  NAME                  of the configuration, or GUARD/QUEUE for a queue of a program
  -c, --config FILE     the configuration. Default: spillway.yaml, if there is one here
      --redis URL       in place of the configuration's; --prefix TEXT goes with it
  -n, --count N         so many dead letters are shown. Default: ${SHOWN}
  -y, --yes             does not ask before it drops more than one
      --json            on stdout, for programs
  -h, --help            this

Exit code 0: done. 1: no such job, nothing to do, not confirmed, or Redis does not answer. 2: what was
typed makes no sense.
`
