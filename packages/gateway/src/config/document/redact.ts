/**
 * Masks secrets in error reports. A literal secret in a file is a mistake, and its report ends up in logs and
 * tickets, so neither the message nor the quoted line may contain it.
 */
import { schemaIndex } from './schema-index.js'
import type { YamlScalar } from './yaml-scalar.js'

export interface Redaction {
  /** A message or a path, without anything secret. */
  clean(text: string): string
  /** Parts of the source that are not to be quoted, in order. */
  readonly spans: readonly Span[]
}

export interface Span {
  readonly start: number
  readonly end: number
}

export const MASK = '***'

const REFERENCE = /^\s*(env:\w+\s*$|file:)/
/** Paths where secrets belong, or where a user may put them by mistake. */
const SECRET_PLACE =
  /^\.vendors\..+?\.(key|keys|headers)([.[]|$)|^\.callers(\[\d+\])?(\.key)?$|^\.redis(\.(url|urls|sentinels|password|tls))?([.[]|$)|^\.admin\.token$/
/** Names that users may give to secrets. */
const SECRET_NAME = /(key|secret|token|passw|auth|credential)[^.]*$/i
/** Names of keys and models are not secrets, although they may look like one. */
const NAME_PLACE = /^\.routes\b.*\.(key|model|models|path|name|stripPrefix)(\[\d+\])?$/
/** Positions where a lone name may be a value that lacks its name. */
const LONE_PLACE = /^\.vendors\..+?\.(keys|headers)\.|^\.callers\[\d+\]\.(?!priority$)/
const URL_PLACE = /^\.vendors\..+\.url$/
const HARMLESS_URL = /^https?:\/\/[\w.-]+(:\d+)?(\/[\w./-]*)?$/
const ADDRESS = /^(localhost|\d{1,3}(\.\d{1,3}){3})(:\d{1,5})?$/

/** A shorter word counts as ordinary if nothing else is known about it. */
const LONG = 8

/** `unknown`: paths of options that do not exist; their values may be secrets. */
export function createRedaction(
  scalars: readonly YamlScalar[],
  unknown: readonly string[],
): Redaction {
  const secret = scalars.filter((word) => isSecret(word) || isUnknown(word, unknown))
  const texts = [...new Set(secret.map(({ text }) => text.trim()))]
    // Messages never quote a value of a secret option; this masks secrets at other positions.
    .filter((text) => text.length >= LONG)
    .sort((a, b) => b.length - a.length)
  return {
    spans: secret.toSorted((a, b) => a.start - b.start),
    clean: (text) => texts.reduce((rest, each) => rest.replaceAll(each, MASK), text),
  }
}

function isSecret({ path, kind, text }: YamlScalar): boolean {
  if (REFERENCE.test(text)) return false
  if (NAME_PLACE.test(path)) return path.endsWith('.key') && looksSecret(text)
  if (looksSecret(text) || hasCredentials(text)) return true
  // Callers are a list. A user who writes a map instead may use the key as a name.
  if (kind !== 'value' && /^\.callers\.[^.[]+$/.test(path)) return true
  if (kind === 'lone-name') return text.length >= LONG && LONE_PLACE.test(path)
  if (kind === 'name') return false
  if (URL_PLACE.test(path)) return text.length >= LONG && !HARMLESS_URL.test(text)
  return SECRET_PLACE.test(path) || SECRET_NAME.test(path)
}

function isUnknown({ path, kind, text }: YamlScalar, unknown: readonly string[]): boolean {
  if (kind !== 'value' || text.length < LONG) return false
  if (REFERENCE.test(text) || isHarmless(text)) return false
  return unknown.some((option) => path.startsWith(option))
}

const KEY_PREFIX = /^(sk|pk|rk)[-_]./

function looksSecret(text: string): boolean {
  if (KEY_PREFIX.test(text)) return true
  return text.length >= 20 && /^[\w.+/=~-]+$/.test(text) && /\d/.test(text) && /[a-z]/i.test(text)
}

/** Whether a URL contains credentials: before the host, or after a question mark. */
function hasCredentials(text: string): boolean {
  return /:.*@|:\/\/.*[?#]/s.test(text)
}

/** A secret's name and its value, up to the end of the line. */
const NAMED_VALUE =
  /((?:key|redis|secret|token|passw|auth|credential)[\w-]*["']?\s*[:=](?!\/\/)\s*)(\S.*)/gi
/** The value is no secret itself but an option, such as `url: mock` in a comment about keys. */
const OPTION = /^[\s{["'-]*(\w+)["']?:(?:\s|$)/
const WORD = /(?<=^|[^\w-])(?:env:\w+|[^\s"'`,:=[\]{}&*!|#]+)(:(?=\s|$))?/g

/**
 * Redacts what is not YAML. Only names, references, addresses and words of the schema are shown. Other long words are
 * masked, because their meaning is not known.
 */
export function redactCode(text: string): string {
  return redactWords(text, isHarmless)
}

/** Redacts a comment: a long word is masked unless it is an ordinary one. */
export function redactComment(text: string): string {
  return redactWords(text, (word) => isHarmless(word) || isOrdinary(word))
}

function redactWords(text: string, isShown: (word: string) => boolean): string {
  return maskNamed(text.replace(/[^\s"'@]*:[^\s"']*@/g, `${MASK}@`)).replace(
    WORD,
    (word: string, colon: string | undefined) => {
      const isName = colon !== undefined || REFERENCE.test(word)
      const isKnown = !KEY_PREFIX.test(word) && isShown(word.replace(/[.?!;)]+$/, ''))
      const isMasked = isName ? looksSecret(word) : word.length >= LONG && !isKnown
      return isMasked ? MASK + (colon ?? '') : word
    },
  )
}

/** Masks what follows the name of a secret, such as `key:`. */
export function maskNamed(text: string): string {
  return text.replace(NAMED_VALUE, (all: string, name: string, value: string) => {
    if (/^["']?(env:\w+(?=["',}\s]|$)|file:)/.test(value)) return all
    const option = OPTION.exec(value)?.[1]
    const isOption = option !== undefined && schemaIndex().words.has(option)
    return name + (isOption ? maskNamed(value) : MASK)
  })
}

/** An address without a login, or a word of the schema. */
function isHarmless(text: string): boolean {
  // The path of a URL may be a secret, as in a web hook.
  const isPlainUrl = HARMLESS_URL.test(text) && isOrdinary(text)
  return ADDRESS.test(text) || isPlainUrl || schemaIndex().words.has(text)
}

/** Every part is a word, a short number, or at most two characters long, as in `gpt-4o-mini`. */
function isOrdinary(word: string): boolean {
  return word
    .split(/[^A-Za-z\d]+/)
    .every((part) => /^([A-Z]?[a-z]{0,19}|[A-Z]{1,19}|\d{1,9}|\w{2})$/.test(part))
}
