/** The texts of an error and its causes, from all fields in which SDKs keep them. */
const FIELDS = ['message', 'status', 'statusCode', 'code', 'responseBody', 'body', 'data', 'text']
const INNER = ['error', 'cause', 'lastError', 'response', 'data']

export function describeError(error, depth = 0) {
  if (typeof error !== 'object' || error === null) return String(error)
  const texts = FIELDS.map((name) => error[name]).filter((value) =>
    /string|number/.test(typeof value),
  )
  if (depth < 4) {
    for (const name of INNER) {
      const inner = error[name]
      if (typeof inner === 'object' && inner !== null) texts.push(describeError(inner, depth + 1))
    }
  }
  return texts.join(' | ')
}
