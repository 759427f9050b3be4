// Scans definitions for content that may poison agents. Runs in a worker thread, since the texts are untrusted: a
// search that takes too long can be ended there.
import { describeEncodedPayload } from './encoded.ts'
import { describeHiddenUnicode, toSearchableText } from './hidden-unicode.ts'
import { findInjectionPhrases } from './phrases.ts'
import { textsOf } from './texts.ts'

/** A definition to scan: its kind, its name, and its JSON text (for instructions, a JSON string). */
interface ScannedDefinition { readonly kind: string, readonly item: string, readonly text: string }
/** A finding in a definition. `place`: a JSON pointer into the definition. `message`: a clause about the definition. */
export interface DefinitionFinding {
  readonly kind: string, readonly item: string, readonly place: string, readonly message: string
}
/** The result of a scan. `names`: names that a text tells the model to call, which may be tools of other servers. */
export interface ScanResult {
  readonly findings: DefinitionFinding[]
  readonly names: ReadonlyArray<Omit<DefinitionFinding, 'message'> & { readonly name: string }>
}

/** Max number of findings, and of names, in one scan. */
const maxFindings = 200
/** Max number of characters of one text that are searched. */
const maxText = 32 * 1024
/** Matches a name that the model is told to call. */
const calledName = /\b(?:call|invoke|use|run|execute|trigger)s? (?:the )?[`'"]?([a-z][a-z0-9]*(?:[_-][a-z0-9]+)+)\b/g

/** Searches definitions for signs of prompt injection. A pure function. */
export function scanDefinitions (definitions: readonly ScannedDefinition[]): ScanResult {
  const findings: DefinitionFinding[] = []
  const names: Array<ScanResult['names'][number]> = []
  for (const { kind, item, text: json } of definitions) {
    for (const { place, text: whole, isInSchema } of textsOf(JSON.parse(json))) {
      const text = whole.slice(0, maxText)
      const visible = toSearchableText(text)
      const cut = whole.length > maxText ? `only its first ${maxText} characters were checked` : undefined
      const messages =
        [cut, describeHiddenUnicode(text), ...findInjectionPhrases(visible, isInSchema), describeEncodedPayload(text)]
      for (const message of messages) if (message !== undefined) findings.push({ kind, item, place, message })
      for (const [, name = ''] of visible.matchAll(calledName)) names.push({ kind, item, place, name })
    }
    if (findings.length >= maxFindings) break
  }
  return { findings: findings.slice(0, maxFindings), names: names.slice(0, maxFindings) }
}

/** The function that the worker pool calls. */
export const run = (definitions: readonly ScannedDefinition[]): ScanResult => scanDefinitions(definitions)
