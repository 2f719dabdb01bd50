/** Removes the file of a Unix socket without a listener. */
import { lstat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'

/**
 * A process that was killed leaves its socket behind. One that a process listens on stays. Workers must not do this
 * on their own: one could remove the socket that another has just begun to listen on.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const probe = connect(path)
  const code = await new Promise<string | undefined>((resolve) => {
    probe.once('connect', () => resolve(undefined))
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
  })
  probe.destroy()
  if (code !== 'ECONNREFUSED') return
  try {
    if ((await lstat(path)).isSocket()) await unlink(path)
  } catch (error) {
    // Another gateway that starts now may have removed it.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
