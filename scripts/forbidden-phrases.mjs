/**
 * Phrases that hide the actor, the number or the option: calls described as people, relative clauses instead of
 * nouns. The groups are written so that the expression does not match its own source.
 */
export const FORBIDDEN_PHRASES = new RegExp(
  [
    '(who)ever|(some|no|any|every)body|so (many|long)',
    '(is|are|was|were|be) told|tells? of|(hears?|heard) of',
    "(its|their|own|last|vendor's) word|in (vain)|go(es)? by|stands? in the way|those (who)",
    'who (waits?|asks?|wants?|comes?|leaves?|gets?|reads?)|the same\\.',
  ].join('|'),
  'i',
)
