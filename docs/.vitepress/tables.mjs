// A header cell without text is no header: screen readers would announce an empty one for each cell below it.

export function emptyHeaderCells(md) {
  const { rules } = md.renderer
  rules.th_open = (tokens, index, options, _, self) => {
    if (tokens[index + 1].content === '') tokens[index].tag = 'td'
    return self.renderToken(tokens, index, options)
  }
  rules.th_close = (tokens, index, options, _, self) => {
    if (tokens[index - 1].content === '') tokens[index].tag = 'td'
    return self.renderToken(tokens, index, options)
  }
}
