import { createHash } from 'node:crypto'

/** A tool definition that the model is trained on. */
export interface Definition { readonly name: string, readonly description: string, readonly parameters: readonly string[] }

/** Definitions of one origin. `version`: of the npm package, or the commit of a repository. */
export interface Source {
  readonly name: string
  readonly kind: 'npm' | 'git'
  readonly version: string
  readonly licence: string
  readonly definitions: readonly Definition[]
}

/** Licences that allow a model to be derived and shared. */
export const licences: ReadonlySet<string> = new Set(['MIT', 'Apache-2.0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause'])

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

/** The hash of the definitions of a source. */
export const hashOf = ({ definitions }: Source): string => sha256(JSON.stringify(definitions))
