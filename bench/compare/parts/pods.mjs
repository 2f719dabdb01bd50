/** Each pod is a process. It runs a file in `pods/`, which receives one `task` and then one `start`. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Starts one pod for each task and waits until all of them are ready. */
export async function startPods(file, tasks) {
  const path = fileURLToPath(new URL(`../pods/${file}`, import.meta.url))
  const pods = tasks.map((task) => {
    const child = fork(path, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const stopWithUs = () => child.kill('SIGKILL')
    process.once('exit', stopWithUs)
    child.once('exit', () => process.off('exit', stopWithUs))
    child.send(task)
    return child
  })
  await Promise.all(pods.map((pod) => messageOf(pod, 'ready')))
  return {
    /** Starts the load on all pods; resolves with their results. */
    start() {
      for (const pod of pods) pod.send('start')
      return Promise.all(pods.map(async (pod) => (await messageOf(pod, 'result')).result))
    },
    async stop() {
      await Promise.all(
        pods.map(async (pod) => {
          if (pod.exitCode !== null || pod.signalCode !== null) return
          pod.kill('SIGKILL')
          await once(pod, 'exit')
        }),
      )
    },
  }
}

function messageOf(pod, kind) {
  return new Promise((resolve, reject) => {
    pod.on('message', (message) => message.kind === kind && resolve(message))
    pod.once('exit', (code) => reject(new Error(`a pod ended with code ${code} before "${kind}"`)))
  })
}
