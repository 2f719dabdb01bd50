/**
 * Rewrites addresses in the headers of a vendor's answer. Those of the vendor become paths of the gateway, so that
 * clients neither see the vendor's address nor bypass the gateway. All others stay unchanged.
 */
export class VendorAddresses {
  readonly #origin: string
  readonly #folder: string
  readonly #prefix: string

  /** `url`: of the vendor. `prefix`: the route's `stripPrefix`. */
  constructor(url: string, prefix = '') {
    const { origin, pathname } = new URL(url)
    this.#origin = origin
    this.#folder = pathname.replace(/\/+$/, '')
    this.#prefix = prefix
  }

  /** The address as a client of the gateway can use it. */
  here(address: string): string {
    // Relative to the path of the request, which is the same on both sides.
    if (!/^(https?:|\/)/i.test(address)) return address
    // Paths are the same on both sides.
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

/** Header values are Latin-1: each character is one byte of the address. */
function percent(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).toUpperCase()}`
}
