// The worker pool runs this module for `OpenApiDocuments`.
import { createHash } from 'node:crypto'
import { type DocumentInput, makeDocument } from './document.ts'
import { toYaml } from './yaml.ts'

/** A document as UTF-8, and its SHA-256 in base64url. */
export interface WrittenDocument { readonly bytes: Uint8Array<ArrayBuffer>, readonly hash: string }

/** Creates a document, and writes it as JSON or YAML. @param task a `DocumentInput` as JSON */
export function run (task: string): WrittenDocument {
  const input = JSON.parse(task) as DocumentInput
  const document = makeDocument(input)
  const bytes = new TextEncoder().encode(input.format === 'json' ? JSON.stringify(document) : toYaml(document))
  return { bytes, hash: createHash('sha256').update(bytes).digest('base64url') }
}
