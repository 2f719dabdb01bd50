/**
 * Addresses in the headers of a vendor's answer. Its own are told as the gateway's, so that nobody sees
 * where it is, or goes there past the gateway; all others are the vendor's word, and stay as they are.
 */
export class VendorAddresses {
  readonly #origin: string
  readonly #folder: string
  readonly #prefix: string

  /** `url`: of the vendor. `prefix`: what the route takes off the paths of requests. */
  constructor(url: string, prefix = '') {
    const { origin, pathname } = new URL(url)
    this.#origin = origin
    this.#folder = pathname.replace(/\/+$/, '')
    this.#prefix = prefix
  }

  /** As a client of the gateway can follow it. */
  here(address: string): string {
    // Relative to what was asked for, which both sides see alike.
    if (!/^(https?:|\/)/i.test(address)) return address
    // Both sides see it alike.
    if (this.#prefix + this.#folder === '' && /^\/(?![/\\])/.test(address)) return address
    const ascii = address.replace(/[\x80-\xff]/g, percent)
    const url = URL.canParse(ascii, this.#origin) ? new URL(ascii, this.#origin) : undefined
    if (url?.origin !== this.#origin) return address
    const { pathname, search, hash } = url
    const path = this.#prefix + this.#inFolder(pathname)
    // Two slashes would begin the name of another host.
    return `${path.startsWith('//') ? '/.' : ''}${path}${search}${hash}`
  }

  #inFolder(path: string): string {
    const folder = this.#folder
    if (path === folder) return '/'
    return path.startsWith(`${folder}/`) ? path.slice(folder.length) : path
  }
}

/** Headers are read byte by byte: a character here is a byte of one there. */
function percent(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).toUpperCase()}`
}
