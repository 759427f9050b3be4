import type { JsonObject } from './keywords.ts'
import { lineStart, yamlKey, yamlMembers } from './yaml.ts'

/** How an object is written piece by piece: its members, some of which are objects that are begun, filled and ended. The outermost ones stand at depth 0. */
export interface Notation {
  readonly open: string
  readonly close: string
  /** What stands between two members. */
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
