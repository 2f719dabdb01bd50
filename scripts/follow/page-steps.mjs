// Splits a page into the steps that a reader performs. The sentence before a block decides what happens with it:
//
//   Save this as `NAME`              the block is a file
//   In another terminal              the commands run in a new terminal
//   Stop the gateway with Ctrl-C     the programs of that name end
//
// A `text` block is the output of the commands before it.

const BLOCK = /^```(\w+)\n(.*?)^```$/gms

/**
 * @param {string} markdown
 * @returns {({ stop: string } | { file: string, text: string }
 *   | { run: string, line: number, isOtherTerminal: boolean, shows?: string })[]}
 */
export function stepsOf(markdown) {
  const steps = []
  let end = 0
  for (const block of markdown.matchAll(BLOCK)) {
    const prose = markdown.slice(end, block.index).replace(/\s+/g, ' ')
    end = block.index + block[0].length
    const [, language, text] = block
    for (const [, program] of prose.matchAll(/Stop (?:the )?(\w+) with Ctrl-C/g)) {
      steps.push({ stop: program })
    }
    const file = /Save this as `([^`]+)`/.exec(prose)?.[1]
    if (file !== undefined) steps.push({ file, text })
    else if (language === 'sh') {
      /** Of the fence. */
      const line = markdown.slice(0, block.index).split('\n').length
      steps.push({ run: text, line, isOtherTerminal: /another terminal/i.test(prose) })
    } else if (language === 'text') {
      const command = steps.findLast(({ run }) => run !== undefined)
      if (command !== undefined) command.shows = text
    }
  }
  return steps
}

/**
 * Whether `printed` contains the lines that a page shows, one after the other. `…` in them is any text, and `…` alone is
 * any number of lines. Decimal numbers may differ. Blank lines and the width of spaces do not count.
 */
export function isShown(shown, printed) {
  const pattern = linesOf(shown)
    .map((line) => (line === '…' ? '(?:.*\\n)*?' : `${patternOf(line)}\\n`))
    .join('')
  const output = linesOf(printed).map((line) => `${line}\n`)
  return new RegExp(`^${pattern}`, 'm').test(output.join(''))
}

function linesOf(text) {
  const lines = text.split('\n').map((line) => line.trim().replace(/\s+/g, ' '))
  return lines.filter((line) => line !== '')
}

function patternOf(line) {
  // A number with one dot; an address such as 127.0.0.1 is none.
  return line
    .split(/((?<![\d.])\d+\.\d+(?![\d.]))/)
    .map((part, index) => (index % 2 === 1 ? '\\d+(?:\\.\\d+)?' : escaped(part)))
    .join('')
}

function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '.*')
}
