/** The requests that every client sends. */
export const QUESTION = 'How is the weather?'
export const MESSAGES = [{ role: 'user', content: QUESTION }]

export const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

export const FORECAST = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
}
