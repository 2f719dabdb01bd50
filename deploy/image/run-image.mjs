// Starts an image as Kubernetes would with `readOnlyRootFilesystem` and `runAsNonRoot`: the root file system is
// read-only, only /tmp can be written, and the process is the image's user. Needs root, for the mounts.

import { spawn } from 'node:child_process'
import { run } from '../../scripts/run-command.mjs'

/** Every step is joined by `&&`; `exec` keeps the process id, so that signals reach Node. */
const MOUNT_AND_START = [
  'mount --bind "$ROOT" "$ROOT"',
  'mount -o remount,bind,ro "$ROOT"',
  'mount -t tmpfs -o size=64m tmpfs "$ROOT/tmp"',
  'mount -t proc proc "$ROOT/proc"',
  'mount --rbind /dev "$ROOT/dev"',
  'exec chroot --userspec="$IMAGE_USER" "$ROOT" "$@"',
].join(' && ')

/**
 * @param {string} image
 * @param {string[]} args after the image's entry point; the image's own command if empty
 */
export async function startImage(image, args) {
  const container = (await buildah('from', image)).trim()
  const mounted = (await buildah('mount', container)).trim()
  const { config } = JSON.parse(await buildah('inspect', '--type', 'image', image)).OCIv1
  const command = [...config.Entrypoint, ...(args.length > 0 ? args : config.Cmd)]
  const child = spawn('unshare', ['--mount', 'sh', '-c', MOUNT_AND_START, 'sh', ...command], {
    env: {
      ...Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s).slice(0, 2))),
      ROOT: mounted,
      IMAGE_USER: config.User,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      output += chunk
    })
  }
  const exited = new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(code ?? signal))
  })
  return {
    pid: child.pid,
    exited,
    get output() {
      return output
    },
    stop: (signal = 'SIGTERM') => child.kill(signal),
    async remove() {
      child.kill('SIGKILL')
      await exited
      await buildah('umount', container)
      await buildah('rm', container)
    },
  }
}

export async function buildah(...args) {
  const { code, stdout, output } = await run('buildah', args)
  if (code !== 0) throw new Error(`buildah ${args[0]} failed (exit code ${code}):\n${output}`)
  return stdout
}
