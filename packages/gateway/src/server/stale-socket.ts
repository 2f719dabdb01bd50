/** Removes the file of a Unix socket without a listener. */
import { lstat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'

/**
 * A killed process leaves its socket behind. A socket with a listener is kept. Workers must not call this: one could
 * remove the socket that another has just opened.
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
