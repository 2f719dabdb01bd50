// Puts SVG files into the page itself, so that their colours follow the light and the dark theme. As an image on
// GitHub, a diagram uses the <style> inside its file instead.

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export function inlineDiagrams(md) {
  const render = md.renderer.rules.image
  md.renderer.rules.image = (tokens, index, options, env, self) => {
    const token = tokens[index]
    const source = token.attrGet('src') ?? ''
    if (!source.endsWith('.svg')) return render(tokens, index, options, env, self)
    const svg = readFileSync(join(dirname(env.path), source), 'utf8')
    const label = md.utils.escapeHtml(token.content)
    return svg
      .replace(/<\?xml.*?\?>\s*/, '')
      .replace(/<!--.*?-->/gs, '')
      .replace(/<style>.*?<\/style>/s, '')
      .replace('<svg', `<svg class="diagram" v-pre role="img" aria-label="${label}"`)
      .replace(/\n\s*/g, ' ')
  }
}
