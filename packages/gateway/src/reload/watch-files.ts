/**
 * Reports when the content of files changes. It watches folders, because editors replace files and Kubernetes
 * replaces a link to a folder. Where the system sends no events (network file systems, some containers), polling
 * finds the change.
 */
import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Clock } from 'spillway'
import { systemClock, type Timer } from 'spillway/internal'

/** A writer needs several writes, so a change is read after this quiet time. */
const SETTLE_MS = 100
const LONGEST_SETTLE_MS = 1_000
const POLL_MS = 5_000

/** By path; undefined if the file could not be read. */
export type Contents = ReadonlyMap<string, string | undefined>

export interface FilesWatch {
  /** Contents in use, by path; a different content is a change. */
  loaded(contents: Contents): void
  close(): void
}

export function watchFiles(
  onChange: () => void,
  { pollMs = POLL_MS, clock = systemClock }: { pollMs?: number; clock?: Clock } = {},
): FilesWatch {
  return new FoldersWatch(onChange, pollMs, clock)
}

class FoldersWatch implements FilesWatch {
  readonly #onChange: () => void
  readonly #pollMs: number
  readonly #clock: Clock
  readonly #watchers = new Map<string, FSWatcher>()
  #files: readonly string[] = []
  /** Contents at the last check. */
  #known = ''
  #polling: Timer | undefined
  #settling: Timer | undefined
  #firstMs = 0
  #checking: Promise<void> | undefined
  #closed = false

  constructor(onChange: () => void, pollMs: number, clock: Clock) {
    this.#onChange = onChange
    this.#pollMs = pollMs
    this.#clock = clock
    this.#checkLater()
  }

  loaded(contents: Contents): void {
    const byPath = new Map([...contents].map(([path, content]) => [resolve(path), content]))
    this.#files = [...byPath.keys()].sort()
    this.#known = fingerprint(this.#files.map((file) => [file, byPath.get(file)]))
    this.#check()
  }

  close(): void {
    this.#closed = true
    this.#polling?.cancel()
    this.#settling?.cancel()
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  /**
   * Called at each event in a folder. Checks the files after `SETTLE_MS` without events, at the latest after
   * `LONGEST_SETTLE_MS`.
   */
  #onFolderEvent(): void {
    const nowMs = this.#clock.now()
    if (this.#settling === undefined) this.#firstMs = nowMs
    else if (nowMs - this.#firstMs > LONGEST_SETTLE_MS) return
    this.#settling?.cancel()
    this.#settling = this.#clock.schedule(SETTLE_MS, () => {
      this.#settling = undefined
      this.#check()
    })
    this.#settling.unref()
  }

  #checkLater(): void {
    this.#polling = this.#clock.schedule(this.#pollMs, () => {
      this.#checkLater()
      this.#check()
    })
    this.#polling.unref()
  }

  #check(): void {
    if (this.#closed) return
    this.#checking ??= this.#compare().finally(() => {
      this.#checking = undefined
    })
  }

  async #compare(): Promise<void> {
    const files = this.#files
    // Before reading, so that the watch sees changes after it.
    await this.#watchFolders(files)
    const seen = fingerprint(await Promise.all(files.map(readNow)))
    if (this.#closed) return
    // Other files were loaded in the meantime.
    if (files !== this.#files) return this.#onFolderEvent()
    if (seen === this.#known) return
    this.#known = seen
    this.#onChange()
  }

  /** Includes the folders that links point to. */
  async #watchFolders(files: readonly string[]): Promise<void> {
    const real = await Promise.all(files.map((file) => realpath(file).catch(() => file)))
    if (this.#closed) return
    const folders = new Set([...files, ...real].map((file) => dirname(file)))
    for (const [folder, watcher] of this.#watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      this.#watchers.delete(folder)
    }
    for (const folder of folders) if (!this.#watchers.has(folder)) this.#watch(folder)
  }

  #watch(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#onFolderEvent())
      this.#watchers.set(folder, watcher)
      watcher.on('error', () => {
        watcher.close()
        // The next check watches the folder again.
        this.#watchers.delete(folder)
      })
    } catch {
      // The folder does not exist, or there are too many watches. Polling finds changes.
    }
  }
}

async function readNow(file: string): Promise<readonly [string, string | undefined]> {
  return [file, await readFile(file, 'utf8').catch(() => undefined)]
}

function fingerprint(files: readonly (readonly [string, string | undefined])[]): string {
  return createHash('sha256').update(JSON.stringify(files)).digest('hex')
}
