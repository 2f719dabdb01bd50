/** What a header may be called, and whatever else is made of the same characters (RFC 9110, 5.6.2). */
export const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

const NAME = new RegExp(`^${TOKEN}$`)

export function isHeaderName(text: string): boolean {
  return NAME.test(text)
}
