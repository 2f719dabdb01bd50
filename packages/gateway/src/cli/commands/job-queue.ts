/** `spillway job-queue`: options and arguments of the command. */
import { type CommandRow, EXIT, HELP_OPTION, type OptionRows, STORE_OPTIONS } from '../command.js'
import type { QueueCommand } from '../jobs/open-job-queues.js'
import { parseArguments, readAction, readWhole, UsageError } from '../parse-args.js'

const VERBS = ['ls', 'show', 'retry', 'drop'] as const
const SHOWN = 20

const OPTIONS = {
  ...STORE_OPTIONS,
  count: {
    type: 'string',
    short: 'n',
    value: 'N',
    about: `number of dead letters to show. Default: ${SHOWN}`,
  },
  yes: { type: 'boolean', short: 'y', about: 'drop more than one without a prompt' },
  json: { type: 'boolean', about: 'write JSON to stdout, for programs' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const jobQueueCommand: CommandRow = {
  name: 'job-queue',
  summary: 'Inspect and repair job queues',
  usage: ['ls', 'show NAME [ID]', 'retry NAME [ID]', 'drop NAME [ID]'],
  words: VERBS,
  options: OPTIONS,
  notes: `  ls      list all job queues of the configuration with their counts
  show    show a job queue and its dead letters, oldest first, or one job
  retry   run a dead letter again, or all of them
  drop    delete a dead letter, or all of them
NAME is a job queue of the configuration, or GUARD/QUEUE for one of an application. The command reads Redis
directly, so it has no --admin.

Exit code 0: done. 1: no such job, nothing to do, or not confirmed. 2: no such job queue. 3: Redis is unreachable.`,
  async run(args) {
    const command = readQueue(args)
    const { runQueue } = await import('../jobs/job-queue-actions.js')
    return (await runQueue(command)) ? EXIT.ok : EXIT.failure
  },
}

function readQueue(args: readonly string[]): QueueCommand {
  const { values, positionals } = parseArguments(args, OPTIONS)
  const [word, name, id, ...more] = positionals
  const verb = readAction('job-queue', word, VERBS)
  const { config, redis, prefix } = values
  const common = { config, redis, prefix, json: values.json === true } as const
  if (verb === 'ls') {
    if (name !== undefined) throw new UsageError(`job-queue ls: unexpected argument "${name}"`)
    return { ...common, verb }
  }
  if (name === undefined) throw new UsageError(`job-queue ${verb}: missing name of the job queue`)
  if (more.length > 0)
    throw new UsageError(`unexpected argument "${more.join(' ')}"; name one job, or all`)
  if (verb === 'show') {
    const count = readWhole('--count', values.count, { min: 0, max: 1_000 }) ?? SHOWN
    return { ...common, verb, name, id, count }
  }
  return { ...common, verb, name, id, yes: values.yes === true }
}
