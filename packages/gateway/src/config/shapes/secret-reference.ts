/** References to secrets: `env:NAME` is a variable, `file:PATH` is the content of a file. */
import { type Check, described, suggest } from 'spillway/options'

/** Sources of references: environment variables and files. */
export interface Sources {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Relative paths start at the folder of the configuration file. Throws as `fs` does. */
  readonly readFile: (path: string) => string
}

type Resolved = { readonly value: string } | { readonly problem: string }

const REFERENCE = /^(env|file):(.*)$/s
/** The JSON Schema of a reference. */
const REFERENCE_PATTERN = '^\\s*(env:\\s*[A-Za-z_][A-Za-z0-9_]*|file:.+)\\s*$'
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/
const KEY = /^[\x21-\x7e]+$/

/** Undefined if the value is not a reference. Errors name the variable or the file, never its content. */
export function resolve(text: unknown, sources: Sources): Resolved | undefined {
  const [, kind, name = ''] = (typeof text === 'string' && REFERENCE.exec(text.trim())) || []
  if (kind === 'env') return fromVariable(name.trim(), sources)
  if (kind === 'file') return fromFile(name.trim(), sources)
  return undefined
}

function fromVariable(name: string, { env }: Sources): Resolved {
  // The text is not shown, because it may be the secret itself.
  if (!VARIABLE.test(name)) return { problem: 'must have the name of a variable after env:' }
  const value = Object.hasOwn(env, name) ? env[name]?.trim() : undefined
  if (value === undefined) {
    const close = suggest(name, Object.keys(env))
    const hint = close === undefined ? '' : `; did you mean ${close}?`
    return { problem: `the environment variable ${name} is not set${hint}` }
  }
  if (value === '') return { problem: `the environment variable ${name} is empty` }
  return { value }
}

function fromFile(path: string, { readFile }: Sources): Resolved {
  if (path === '') return { problem: 'must have the path of a file after file:' }
  let value: string
  try {
    value = readFile(path).trim()
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string }
    return { problem: `the file ${path} cannot be read (${code})` }
  }
  return value === '' ? { problem: `the file ${path} is empty` } : { value }
}

/** A key or another secret. A literal value is not shown in the error. */
export function secret(sources: Sources): Check<string> {
  const check: Check<string> = (value, path, problems) => {
    const found = resolve(value, sources)
    const message = complaintAbout(value, found)
    if (message !== undefined) problems.push({ path, message })
    return found !== undefined && 'value' in found ? found.value : ''
  }
  return described(check, { type: 'string', pattern: REFERENCE_PATTERN })
}

/** A certificate or a private key in PEM format, from a variable or a file. */
export function pem(sources: Sources): Check<string> {
  const check: Check<string> = (value, path, problems) => {
    const found = resolve(value, sources)
    if (found !== undefined && 'value' in found && found.value.includes('-----BEGIN ')) {
      return found.value
    }
    const isProblem = found !== undefined && 'problem' in found
    const expected = 'must be env:NAME or file:PATH of something in PEM format'
    problems.push({ path, message: isProblem ? found.problem : expected })
    return ''
  }
  return described(check, { type: 'string', pattern: REFERENCE_PATTERN })
}

function complaintAbout(value: unknown, found: Resolved | undefined): string | undefined {
  if (found === undefined) {
    const expected = 'must be env:NAME or file:PATH'
    if (value === undefined || value === null) return `${expected}, got nothing`
    if (typeof value === 'object')
      return `${expected}, got ${Array.isArray(value) ? 'an array' : 'an object'}`
    return `${expected}: a secret must not be written here`
  }
  if ('problem' in found) return found.problem
  if (KEY.test(found.value)) return undefined
  return 'refers to something with characters that no key has, such as spaces or line breaks'
}

/** Ordinary text, or a reference to it. */
export function textOrReference(sources: Sources, accepts: RegExp, what: string): Check<string> {
  const check: Check<string> = (value, path, problems) => {
    const found = resolve(value, sources)
    if (found !== undefined && 'problem' in found) {
      problems.push({ path, message: found.problem })
      return ''
    }
    const text = found?.value ?? value
    if (typeof text === 'string' && text !== '' && accepts.test(text)) return text
    // Not shown, because it may be a secret.
    const isQuoted = typeof value !== 'number' && typeof value !== 'boolean'
    const expected = isQuoted ? `${what}, env:NAME or file:PATH` : `${what}: put it in quotes`
    problems.push({ path, message: `must be ${expected}` })
    return ''
  }
  return described(check, { type: 'string', minLength: 1 })
}
