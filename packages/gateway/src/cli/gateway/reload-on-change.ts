/** Reloads the configuration on SIGHUP and when one of its files changes. */
import { type FilesWatch, watchFiles } from '../../reload/watch-files.js'
import type { ConfigSource } from './config-source.js'

/** Reloads on SIGHUP, and when a file that was read has changed. */
export function reloadOnChange(
  source: ConfigSource,
  watches: boolean,
  reload: (cause: string) => Promise<unknown>,
): FilesWatch | undefined {
  const run = async (cause: string) => {
    await reload(cause)
    watch?.loaded(source.contents)
  }
  const watch =
    watches && source.file !== undefined ? watchFiles(() => void run('file')) : undefined
  watch?.loaded(source.contents)
  // Without a file there is no reload, and SIGHUP (a closed terminal) ends the process.
  if (source.file !== undefined) process.on('SIGHUP', () => void run('SIGHUP'))
  return watch
}
