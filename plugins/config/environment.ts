import { readFileSync } from 'node:fs'
import { readEnv, secretNames, type Env } from '../../schemas/env.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Max size of a file that holds a secret, in characters. */
const maxSecretFile = 64 * 1024

/**
 * Reads the environment by its schema, and secrets also from the files that `<NAME>_FILE` names, as containers mount them.
 * @throws Error that names the variable and what to set, and holds nothing of a secret
 */
export const readEnvironment = (environment: Environment): Env =>
  readEnv({ ...environment, ...Object.fromEntries(secretNames.map((name) => [name, secretOf(name, environment)])) })

/** A secret from its variable, or from its file, without a line break at the end. @throws Error */
function secretOf (name: string, environment: Environment): string | undefined {
  const [text, path = ''] = [environment[name], environment[`${name}_FILE`]]
  if (path === '') return text
  if (text !== undefined && text !== '') throw new Error(`${name} and ${name}_FILE are both set. Set one of them.`)
  const secret = contentOf(path, name).replace(/\r?\n$/, '')
  if (secret === '') throw new Error(`The file that ${name}_FILE names is empty.`)
  if (secret.length > maxSecretFile) throw new Error(`The file that ${name}_FILE names is too large for a secret.`)
  return secret
}

function contentOf (path: string, name: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // Without the path: somebody may have put the secret itself there.
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new Error(`The file that ${name}_FILE names cannot be read (${code}). Check the path, and that this user may read the file.`)
  }
}
