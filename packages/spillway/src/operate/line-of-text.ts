/** Something a person wrote that ends up in logs: one line, and not too long. */
import type { Check } from '../core/options/checks.js'

export function lineOfText(most: number): Check<string> {
  return (value, path, problems) => {
    const good = typeof value === 'string' && value.trim() !== '' && value.length <= most
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be in it
    if (good && !/[\u0000-\u001f\u007f]/.test(value)) return value.trim()
    const got = value === undefined ? ', got nothing' : ''
    problems.push({ path, message: `must be a line of 1 to ${most} characters${got}` })
    return undefined as never
  }
}
