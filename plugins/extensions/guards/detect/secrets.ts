import { matchesOf, type FindRanges, type TextRange } from './range.ts'

/**
 * Patterns of secrets in formats that their issuers document, and of passwords in URLs. A group, if present, is the
 * secret part of a match. Repetitions are bounded, so that matching takes linear time.
 */
const shapes: readonly string[] = [
  // AWS: secret keys after their names.
  '(?:aws_?secret_?access_?key|AWS_SECRET_ACCESS_KEY|[sS]ecretAccessKey)["\']?\\s{0,4}[:=]\\s{0,4}["\']?' +
    '([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])',
  // Telegram; Discord: the base64 of the bot's id, which is a number.
  '\\d{8,10}:AA[\\w-]{33}(?![\\w-])',
  '[MNO][A-Za-z0-9]{22,27}\\.[\\w-]{6}\\.[\\w-]{27,38}(?![\\w-])',
  // Payment providers.
  '(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,255}',
  'sq0(?:atp|csp)-[\\w-]{22,43}',
  'EAAA[\\w-]{60}(?![\\w-])',
  // Google, Azure, HashiCorp, Databricks.
  'AIza[\\w-]{35}(?![\\w-])',
  '(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{43,88}={0,2})',
  '[\\w.~-]{3}\\dQ~[\\w.~-]{31,34}(?![\\w.~-])',
  'hv[sbr]\\.[\\w-]{24,255}',
  'dapi[a-f0-9]{32}(?:-\\d)?(?![a-f0-9])',
  // Model providers.
  'sk-(?:ant-|proj-|svcacct-|admin-|or-|lf-)?[\\w-]{20,255}',
  '(?:hf|gsk|r8|nvapi|pplx|xai|tgp_v1|fc)[_-][A-Za-z0-9_-]{32,255}',
  // Mail and other services.
  'SG\\.[\\w-]{16,32}\\.[\\w-]{16,64}',
  'key-[a-f0-9]{32}(?![a-f0-9])',
  '(?:ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9]))',
  // The gateway's own keys and tokens.
  'th[klctr]_[\\w-]{20,255}',
  // JSON Web Tokens, whose parts begin with the base64 of `{"`.
  '(?<![\\w-])eyJ[\\w-]{10,4096}\\.eyJ[\\w-]{2,16384}\\.[\\w-]{10,2048}',
  // The password in a URL.
  '[a-z][a-z0-9+.-]{1,20}://[^\\s:@/?#"\'<>]{0,256}:([^\\s@/"\'<>]{3,256})(?=@[\\w[])'
]

/** Patterns that also match directly after a letter or digit, since no ordinary word ends with their prefixes. */
const distinctShapes: readonly string[] = [
  '(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Z0-9])',
  'gh[pousr]_[A-Za-z0-9]{36,255}',
  'github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}',
  'gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[\\w-]{20,255}',
  'xox[abeoprs]-[A-Za-z0-9-]{10,255}',
  'xapp-\\d-[A-Za-z0-9-]{20,255}',
  'https://hooks\\.slack\\.com/(?:services|workflows|triggers)/[\\w/+-]{20,255}',
  'https://(?:\\w{1,10}\\.)?discord(?:app)?\\.com/api/webhooks/\\d{10,20}/[\\w-]{60,100}',
  'whsec_[A-Za-z0-9+/=]{24,255}',
  'ya29\\.[\\w-]{20,2048}',
  'GOCSPX-[\\w-]{28}',
  'do[opr]_v1_[a-f0-9]{64}',
  'npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])',
  'pypi-AgEI[\\w-]{50,1024}',
  'rubygems_[a-f0-9]{48}',
  'dckr_(?:pat|oat)_[\\w-]{27,64}',
  'shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}',
  'lin_api_[A-Za-z0-9]{40}',
  'sntry[su]_[\\w+/=.-]{40,512}',
  'glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}',
  'glc_[A-Za-z0-9+/]{32,512}={0,2}',
  'ATATT3[\\w=-]{60,255}',
  'AGE-SECRET-KEY-1[A-Z0-9]{58}'
]

const tokens = new RegExp(`(?:${distinctShapes.join('|')})|(?<![A-Za-z0-9])(?:${shapes.join('|')})`, 'dg')

/** Min entropy of a token, in bits per character; examples such as `ghp_xxxx…` have less. */
const minEntropy = 2.5

function entropyOf (text: string): number {
  const counts = new Map<string, number>()
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1)
  let sum = 0
  for (const count of counts.values()) sum -= count / text.length * Math.log2(count / text.length)
  return sum
}

/**
 * Whether a text that matches a pattern is a token: it looks random, and is not a hyphenated word without digits, such
 * as the name of a CSS class.
 */
const isToken = (text: string): boolean =>
  entropyOf(text) >= minEntropy && (!/^\w{2,4}-/.test(text) || /\d/.test(text))

/** Matches the first or last line of a private key in PEM. */
const keyEdge = /-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g

/** Finds private keys in PEM. A key without a last line extends to the end of the text. */
function * privateKeys (text: string): Generator<TextRange> {
  if (!text.includes('PRIVATE KEY')) return
  const edges = matchesOf(keyEdge, text)
  for (const { index: start, 1: edge } of edges) {
    if (edge !== 'BEGIN') continue
    const { value: last } = edges.next() as IteratorResult<RegExpExecArray, undefined>
    yield { start, end: last === undefined ? text.length : last.index + last[0].length }
  }
}

/** Finds tokens of services, private keys, and passwords in URLs. */
export const findSecrets: FindRanges = function * (text) {
  yield * privateKeys(text)
  for (const match of matchesOf(tokens, text)) {
    // The range of the group, if the pattern has one, otherwise of the whole match.
    const [start, end] = match.indices?.slice(1).find((each) => each !== undefined) ??
      [match.index, match.index + match[0].length]
    if (isToken(text.slice(start, end)) || match[0].includes('://')) yield { start, end }
  }
}
