import { dump } from 'js-yaml'

/**
 * Writes an object as YAML that parsers of YAML 1.1 and 1.2 read alike: string values are quoted, and deeply nested
 * values are in flow style. Undefined members are omitted. Lone surrogates, at which some parsers fail, are replaced.
 */
export function toYaml (value: object): string {
  const json = JSON.stringify(value)
  const isWellFormed = !json.includes('\\ud')
  // `JSON.stringify` escapes lone surrogates only.
  const replaced = isWellFormed ? value : JSON.parse(json.replace(/\\(?:ud[89a-f]..|.)/g, replaceLoneSurrogate)) as object
  return dump(replaced, {
    noRefs: true, skipInvalid: true, lineWidth: -1, quoteStyle: 'double', forceQuotes: true, flowLevel: 40
  })
}

const replaceLoneSurrogate = (escape: string): string => escape.startsWith('\\ud') ? '\ufffd' : escape
