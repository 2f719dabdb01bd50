/** Opens the job queues of a configuration, or those named on the command line. */
import type { JobQueue } from 'spillway/shared'
import { createJobQueue, type Store } from 'spillway/shared'
import type { QueueConfig } from '../../config/config.js'
import { openStore } from '../../shared-store.js'
import { untilReady } from '../operate/fleet-connection.js'
import { readStoreSource, type StoreValues } from '../operate/store-source.js'
import { didYouMean, UsageError } from '../parse-args.js'

interface QueueCommon extends StoreValues {
  readonly json: boolean
}

export type QueueCommand = QueueCommon &
  (
    | { readonly verb: 'ls' }
    | {
        readonly verb: 'show'
        readonly name: string
        /** Undefined shows the queue and its oldest dead letters. */
        readonly id: string | undefined
        readonly count: number
      }
    | {
        readonly verb: 'retry' | 'drop'
        readonly name: string
        /** Undefined selects all dead letters. */
        readonly id: string | undefined
        readonly yes: boolean
      }
  )

export interface OpenQueues {
  readonly configured: readonly QueueConfig[]
  open(name: string): NamedQueue
  close(): Promise<void>
}

export interface NamedQueue {
  readonly name: string
  readonly guard: string
  readonly jobs: JobQueue
}

export async function openQueues(command: QueueCommand): Promise<OpenQueues> {
  const { config, redis } = readStoreSource(command)
  const store = openStore({ ...redis, emitWarnings: false })
  try {
    await untilReady(store)
  } catch (error) {
    await store.close()
    throw error
  }
  const configured = config.jobQueues ?? []
  return {
    configured,
    open: (name) => find(name, configured, store),
    close: () => store.close(),
  }
}

/** Finds a queue of the configuration, or one of an application by GUARD/QUEUE. */
function find(name: string, configured: readonly QueueConfig[], store: Store): NamedQueue {
  const known = configured.find((each) => each.name === name)
  if (known !== undefined) {
    const { vendor: guard, settings } = known
    const { backoff: _, baseMs: __, maxMs: ___, jitter: ____, ...own } = settings
    return { name, guard, jobs: createJobQueue({ ...own, store, name, guard }) }
  }
  const slash = name.indexOf('/')
  if (slash > 0 && slash < name.length - 1) {
    const [guard, queue] = [name.slice(0, slash), name.slice(slash + 1)]
    return { name, guard, jobs: createJobQueue({ store, name: queue, guard }) }
  }
  const names = configured.map((each) => each.name)
  const hint = names.length === 0 ? '; write GUARD/QUEUE' : didYouMean(name, names)
  throw new UsageError(`unknown job queue "${name}"${hint}`)
}
