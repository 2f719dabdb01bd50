/** Starts four pods, each in its own process, and their Redis. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { freePort } from '../faults/fleet.js'
import { type RedisProcess, startRedis } from '../faults/redis-process.js'
import type { FromPod, Run, ToPod } from './messages.js'

const PROGRAM = fileURLToPath(new URL('pod.js', import.meta.url))
const PODS = 4

export class AgentFleet {
  readonly #redis: RedisProcess
  readonly #pods: readonly ChildProcess[]

  private constructor(redis: RedisProcess, pods: readonly ChildProcess[]) {
    this.#redis = redis
    this.#pods = pods
  }

  static async start(): Promise<AgentFleet> {
    const redis = await startRedis(await freePort())
    const pods = Array.from({ length: PODS }, (_, index) =>
      fork(PROGRAM, [redis.port, index, PODS].map(String), {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      }),
    )
    await Promise.all(pods.map((pod) => message(pod, (received) => received === 'ready')))
    return new AgentFleet(redis, pods)
  }

  begin(run: Run): void {
    this.#send({ start: run })
  }

  /** Resolves when all agents have stopped. */
  async end({ name }: Run): Promise<void> {
    const stopped = this.#pods.map((pod) =>
      message(pod, (received) => typeof received === 'object' && received.stopped === name),
    )
    this.#send({ stop: name })
    await Promise.all(stopped)
  }

  async stop(): Promise<void> {
    for (const pod of this.#pods) pod.disconnect()
    await Promise.all(this.#pods.map((pod) => once(pod, 'exit')))
    await this.#redis.stop()
  }

  #send(sent: ToPod): void {
    for (const pod of this.#pods) pod.send(sent)
  }
}

/** Resolves with the first message that matches. */
function message(pod: ChildProcess, isMeant: (received: FromPod) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const onMessage = (received: FromPod) => {
      if (!isMeant(received)) return
      pod.off('message', onMessage)
      pod.off('exit', onExit)
      resolve()
    }
    const onExit = () => reject(new Error('a pod exited'))
    pod.on('message', onMessage)
    pod.on('exit', onExit)
  })
}
