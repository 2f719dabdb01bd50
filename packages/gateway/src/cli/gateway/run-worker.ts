/** A worker of `spillway gateway`: a gateway whose admin port, configuration and end come from the supervisor. */
import { createGateway, type Gateway } from '../../gateway.js'
import { Channel } from '../../workers/channel.js'
import { receive } from '../../workers/hand-over.js'
import type { SupervisorApi, WorkerApi, WorkersState } from '../../workers/protocol.js'
import type { ConfigSource } from './config-source.js'

/** Metrics and reloads send a message to every worker. */
const REPLY_TIMEOUT_MS = 60_000

export async function runWorker(source: ConfigSource): Promise<void> {
  // The supervisor has ended before this process was needed, or before it had started.
  const endAlone = () => process.exit(1)
  if (!process.connected) return endAlone()
  process.once('disconnect', endAlone)
  // Ignored: a terminal signals all processes of its group, and the supervisor handles it.
  process.on('SIGINT', () => {})
  process.on('SIGHUP', () => {})
  let state: WorkersState = { ready: 0, total: 1, overloaded: 0, started: false }
  let running: Gateway | undefined
  const api: WorkerApi = {
    async reload({ cause, contents }) {
      const gateway = await started
      source.use(new Map(contents))
      return gateway.reload(cause)
    },
    metrics: async () => (await started).metrics(),
    snapshot: async () => (await started).spillway.snapshot(),
    decisions: async ({ cursor }) => (await started).decisions(cursor),
    find: async (requestId) => (await started).find(requestId),
    workersChanged: (next) => {
      state = next
    },
    serve: (to, socket) => receive(to, socket, running?.serve),
    async drain(options) {
      const gateway = await started
      void gateway.close(options)
    },
  }
  const channel = new Channel<SupervisorApi>(
    {
      send: (message, handle, onFailed) =>
        void process.send?.(message, handle, undefined, (error) => error && onFailed(error)),
      onMessage: (listener) => void process.on('message', listener),
    },
    { ...api },
  )

  const started = start()

  async function start(): Promise<Gateway> {
    // Loaded before it is needed: a spare process should not have to do it when it becomes a worker.
    await import('redis')
    const timeoutMs = Number.POSITIVE_INFINITY
    const { slot, contents } = await channel.call('configuration', undefined, { timeoutMs })
    source.use(new Map(contents))
    const gateway = await createGateway(source.read(), {
      read: () => source.read(),
      check: () => source.check(),
      supervisor: {
        slot,
        workers: () => state,
        overloaded: (isOverloaded) => void channel.call('overloaded', isOverloaded).catch(() => {}),
        metrics: () => channel.call('metrics', undefined, { timeoutMs: REPLY_TIMEOUT_MS }),
        decisions: (cursors) => channel.call('decisions', cursors),
        find: (requestId) => channel.call('find', requestId),
        snapshots: () => channel.call('snapshots', undefined, { timeoutMs: REPLY_TIMEOUT_MS }),
        reload: (cause) => channel.call('reload', cause, { timeoutMs: REPLY_TIMEOUT_MS }),
      },
    })
    await gateway.start()
    process.on('SIGTERM', () => void gateway.close())
    // Connections may arrive before the answer to `ready`.
    running = gateway
    await channel.call('ready', undefined)
    return gateway
  }

  try {
    const gateway = await started
    process.off('disconnect', endAlone)
    // The supervisor was killed, so no new connection will arrive.
    process.once('disconnect', () => void gateway.close({ delayMs: 0 }))
    await gateway.whenClosed
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    await channel.call('failed', { code, message }).catch(() => {})
    process.exitCode = 1
  } finally {
    // The timer of an unanswered call would keep this process alive and delay its replacement.
    channel.close()
    if (process.connected) process.disconnect?.()
  }
}
