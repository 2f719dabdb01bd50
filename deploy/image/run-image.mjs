// Starts an image as Kubernetes would with `readOnlyRootFilesystem` and `runAsNonRoot`: the root file system is
// read-only, only /tmp can be written, and the process is the image's user. Needs root, for the mounts.

import { spawn } from 'node:child_process'
import { run } from '../../scripts/run-command.mjs'

/** Every step is joined by `&&`; `exec` keeps the process id, so that signals reach Node. */
const MOUNT_AND_START = [
  'mount --bind "$ROOT" "$ROOT"',
  'mount -o "remount,bind,$ROOT_MODE" "$ROOT"',
  'mount -t tmpfs -o size=64m tmpfs "$ROOT/tmp"',
  'mount -t proc proc "$ROOT/proc"',
  'mount --rbind /dev "$ROOT/dev"',
  'exec chroot --userspec="$IMAGE_USER" "$ROOT" "$@"',
].join(' && ')

/**
 * @param {string} image
 * @param {string[]} args after the image's entry point; the image's own command if empty
 * @param {{ isWritable?: boolean, beforeStart?: (root: string) => void }} options `isWritable`: the user may write every
 *   file, to see whether the process does
 */
export async function startImage(image, args, { isWritable = false, beforeStart } = {}) {
  const container = (await buildah('from', image)).trim()
  const mounted = (await buildah('mount', container)).trim()
  const { config } = (await inspectImage(image)).OCIv1
  if (isWritable) await mustRun('chown', '-R', config.User, mounted)
  beforeStart?.(mounted)
  const command = [...config.Entrypoint, ...(args.length > 0 ? args : config.Cmd)]
  const child = spawn('unshare', ['--mount', 'sh', '-c', MOUNT_AND_START, 'sh', ...command], {
    env: {
      ...Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s).slice(0, 2))),
      ROOT: mounted,
      ROOT_MODE: isWritable ? 'rw' : 'ro',
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
    /** The image's root file system, as this machine sees it. */
    root: mounted,
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

/** Runs a command in the image's root file system, as its user, and resolves with the exit code. */
export async function runInside({ root }, user, command, env) {
  const { code } = await run('chroot', [`--userspec=${user}`, root, ...command], { env })
  return code
}

export async function inspectImage(image) {
  return JSON.parse(await buildah('inspect', '--type', 'image', image))
}

/** Calls `use` with the path of the image's files. */
export async function withFiles(image, use) {
  const container = (await buildah('from', image)).trim()
  try {
    return use((await buildah('mount', container)).trim())
  } finally {
    await buildah('umount', container)
    await buildah('rm', container)
  }
}

export function buildah(...args) {
  return mustRun('buildah', ...args)
}

async function mustRun(command, ...args) {
  const { code, stdout, output } = await run(command, args)
  if (code !== 0) throw new Error(`${command} ${args[0]} failed (exit code ${code}):\n${output}`)
  return stdout
}
