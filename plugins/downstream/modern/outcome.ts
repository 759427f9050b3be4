/** What a request is answered with. */
export interface Outcome {
  readonly kind: 'result' | 'error'
  /** The text of `result` or `error`. */
  readonly parts: ReadonlyArray<string | Buffer>
  /** Of the HTTP answer. */
  readonly status: number
}
