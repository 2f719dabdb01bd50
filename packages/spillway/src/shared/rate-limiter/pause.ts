/**
 * A pause may be ended by hand, and nobody is told: whoever is kept out by one asks again after this long.
 * Shorter ones are simply over then.
 */
export const ASK_AGAIN_MS = 1_000
