// The text side of sync-docs.mjs: finds the markers of one page and fills the blocks under them.

const MARKER = /^<!-- (example|output): (\S+) -->\s*$/
const FENCE = /^(`{3,})(\w*)/
const LANGUAGE = { example: 'ts', output: 'text' }

/**
 * @param {string} text the page
 * @param {object} sources
 * @param {(name: string) => string | undefined} sources.source the text of an example
 * @param {(name: string) => Promise<string>} [sources.output] its output; absent: the block is not changed
 * @returns the new text, the differences, and the mistakes of the page; lines count from 1
 */
export async function syncPage(text, { source, output }) {
  const lines = text.split('\n')
  const page = { text: '', changes: [], errors: [] }
  const result = []

  for (let at = 0; at < lines.length; at += 1) {
    result.push(lines[at])
    const marker = MARKER.exec(lines[at])
    if (marker) {
      const [, kind, name] = marker
      try {
        const block = findBlock(lines, at + 1, LANGUAGE[kind])
        const wanted = await wantedText({ kind, name, source, output })
        const body = wanted?.trimEnd().split('\n') ?? block.body
        const change = firstDifference(block.body, body)
        if (change) {
          page.changes.push({
            line: block.open + 2 + change.index,
            message: `${name}: ${change.text}`,
          })
        }
        result.push(...lines.slice(at + 1, block.open + 1), ...body, lines[block.close])
        at = block.close
      } catch (error) {
        page.errors.push({ line: at + 1, message: `${kind} ${name}: ${error.message}` })
      }
    } else if (FENCE.test(lines[at])) {
      // Markers inside a code block are documentation about markers.
      const close = closingLineOf(lines, at) ?? lines.length - 1
      result.push(...lines.slice(at + 1, close + 1))
      at = close
    }
  }
  page.text = result.join('\n')
  return page
}

/** The fenced block at `from`; one blank line before it is fine. */
function findBlock(lines, from, language) {
  const open = lines[from]?.trim() === '' ? from + 1 : from
  if (FENCE.exec(lines[open] ?? '')?.[2] !== language) {
    throw new Error(`expected a \`\`\`${language} block under the marker`)
  }
  const close = closingLineOf(lines, open)
  if (close === undefined) throw new Error('the block under the marker is never closed')
  return { open, close, body: lines.slice(open + 1, close) }
}

async function wantedText({ kind, name, source, output }) {
  const text = source(name)
  if (text === undefined) throw new Error(`there is no examples/src/${name}`)
  return kind === 'example' ? text : output?.(name)
}

function closingLineOf(lines, open) {
  const [, ticks] = FENCE.exec(lines[open])
  const close = lines.findIndex((line, index) => index > open && line.trimEnd() === ticks)
  return close === -1 ? undefined : close
}

function firstDifference(old, wanted) {
  const length = Math.max(old.length, wanted.length)
  for (let index = 0; index < length; index += 1) {
    if (old[index] === wanted[index]) continue
    const show = (line) => (line === undefined ? 'the end of the block' : `\`${line}\``)
    return { index, text: `the page has ${show(old[index])}, the file ${show(wanted[index])}` }
  }
  return undefined
}
