/** A worker of `spillway gateway`: a gateway whose admin port, configuration and end come from the supervisor. */
import { createGateway, type Gateway } from '../../gateway.js'
import { Channel } from '../../workers/channel.js'
import {
  SLOT_VARIABLE,
  type SupervisorApi,
  type WorkerApi,
  type WorkersState,
} from '../../workers/protocol.js'
import type { ConfigSource } from './config-source.js'

/** Metrics and reloads ask every worker in turn. */
const ASK_MS = 60_000

export async function runWorker(source: ConfigSource): Promise<void> {
  // A terminal signals all processes; the supervisor decides what becomes of it.
  process.on('SIGINT', () => {})
  process.on('SIGHUP', () => {})
  let state: WorkersState = { ready: 0, total: 1, started: false }
  const api: WorkerApi = {
    async reload({ cause, contents }) {
      const gateway = await started
      source.use(new Map(contents))
      return gateway.reload(cause)
    },
    metrics: async () => (await started).metrics(),
    snapshot: async () => (await started).spillway.snapshot(),
    workersChanged: (next) => {
      state = next
    },
    async serve({ port, isLast }, socket) {
      const gateway = await started
      // Undefined if the client has closed it on the way.
      return socket === undefined || gateway.serve(port, socket, isLast)
    },
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
    source.use(new Map(await channel.call('configuration', undefined)))
    const gateway = await createGateway(source.read(), {
      read: () => source.read(),
      check: () => source.check(),
      supervisor: {
        slot: Number(process.env[SLOT_VARIABLE]),
        workers: () => state,
        metrics: () => channel.call('metrics', undefined, { timeoutMs: ASK_MS }),
        snapshots: () => channel.call('snapshots', undefined, { timeoutMs: ASK_MS }),
        reload: (cause) => channel.call('reload', cause, { timeoutMs: ASK_MS }),
      },
    })
    await gateway.start()
    await channel.call('ready', undefined)
    return gateway
  }

  try {
    const gateway = await started
    process.on('SIGTERM', () => void gateway.close())
    // The supervisor was killed, so no new connection will arrive.
    process.once('disconnect', () => void gateway.close({ delayMs: 0 }))
    await gateway.whenClosed
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    await channel.call('failed', { code, message }).catch(() => {})
    process.exitCode = 1
  } finally {
    if (process.connected) process.disconnect?.()
  }
}
