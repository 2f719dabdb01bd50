/** The page: one file that loads nothing else. Read, compressed and hashed once. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

/** Beside the compiled file, or where the build puts it if this runs from the sources. */
const PLACES = ['./page.html', '../dist/page.html']

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Spillway</title>
<h1>The dashboard’s page is not built</h1><p>Run <code>npm run build</code>, and start again.</p></html>`

export interface Page {
  readonly plain: Buffer
  readonly packed: Buffer
  readonly headers: Readonly<Record<string, string>>
}

let loaded: Page | undefined

export function loadPage(): Page {
  loaded ??= describe(readPage() ?? NOT_BUILT)
  return loaded
}

function readPage(): string | undefined {
  for (const place of PLACES) {
    try {
      return readFileSync(new URL(place, import.meta.url), 'utf8')
    } catch {
      // Tries the next path.
    }
  }
  return undefined
}

function describe(html: string): Page {
  const plain = Buffer.from(html)
  return { plain, packed: gzipSync(plain, { level: 9 }), headers: headersFor(html) }
}

/**
 * Allows only the scripts and styles in the page and requests to this server, and forbids frames.
 */
function headersFor(html: string): Record<string, string> {
  const scripts = hashesOf(html, /<script\b[^>]*>([\s\S]*?)<\/script>/gi)
  const styles = hashesOf(html, /<style\b[^>]*>([\s\S]*?)<\/style>/gi)
  const policy = [
    "default-src 'none'",
    `script-src ${scripts}`,
    `style-src ${styles}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
    vary: 'accept-encoding',
  }
}

function hashesOf(html: string, tag: RegExp): string {
  const hashes = Array.from(
    html.matchAll(tag),
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  )
  return hashes.length === 0 ? "'none'" : hashes.join(' ')
}
