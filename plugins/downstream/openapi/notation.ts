import type { JsonObject } from './keywords.ts'
import { lineStart, yamlKey, yamlMembers } from './yaml.ts'

/** Writes a document piece by piece: `begin` and `end` enclose the members of a nested object. The outermost members are at depth 0. */
export interface Notation {
  /** The text before and after the outermost members. */
  readonly open: string
  readonly close: string
  /** The text between two members. */
  readonly separator: string
  members: (value: JsonObject, depth: number) => string
  begin: (key: string, depth: number) => string
  end: (isEmpty: boolean) => string
}

export type Format = 'json' | 'yaml'

export const notations: Readonly<Record<Format, Notation>> = {
  json: {
    open: '{',
    close: '}',
    separator: ',',
    members: (value) => JSON.stringify(value).slice(1, -1),
    begin: (key) => `${JSON.stringify(key)}:{`,
    end: () => '}'
  },
  yaml: {
    open: '',
    close: '\n',
    separator: '',
    members: yamlMembers,
    begin: (key, depth) => yamlKey(key, lineStart(depth)),
    end: (isEmpty) => isEmpty ? ' {}' : ''
  }
}
