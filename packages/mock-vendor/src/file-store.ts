/** Uploaded files of a mock vendor, in memory. */

export interface StoredFile {
  readonly id: string
  readonly name: string
  readonly contentType: string
  readonly purpose: string
  readonly createdMs: number
  readonly bytes: Buffer
}

/** The newest files are kept. */
const MAX_FILES = 100

export class FileStore {
  readonly #files = new Map<string, StoredFile>()
  #number = 0

  add(file: Omit<StoredFile, 'id'>): StoredFile {
    const stored = { ...file, id: `file-mock${++this.#number}` }
    this.#files.set(stored.id, stored)
    const [oldest] = this.#files.keys()
    if (this.#files.size > MAX_FILES && oldest !== undefined) this.#files.delete(oldest)
    return stored
  }

  get(id: string | undefined): StoredFile | undefined {
    return id === undefined ? undefined : this.#files.get(id)
  }

  remove(id: string): void {
    this.#files.delete(id)
  }

  /** Newest first. */
  list(): StoredFile[] {
    return [...this.#files.values()].reverse()
  }
}
