/** Input field for the admin token. */
import { useId } from 'preact/hooks'

export function TokenFields({
  secret,
  remember,
}: {
  secret: { value: string }
  remember: { value: boolean }
}) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>Admin token</label>
      <input
        id={id}
        type="password"
        autocomplete="off"
        required
        value={secret.value}
        onInput={(event) => {
          secret.value = event.currentTarget.value
        }}
      />
      <label class="row">
        <input
          type="checkbox"
          checked={remember.value}
          onChange={(event) => {
            remember.value = event.currentTarget.checked
          }}
        />
        Keep it until this tab is closed
      </label>
    </div>
  )
}
