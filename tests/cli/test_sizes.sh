#!/bin/sh
# SPDX-License-Identifier: MIT
# test_sizes.sh - sizes that no machine holds are refused with one sentence, at once and without memory, by plan and run.
. "$NAMI_SOURCE/tests/cli/lib.sh"
# shellcheck disable=SC3045 # dash and bash have it
ulimit -v 4000000

# refuse TEXT ARGUMENT...: exit 2 or 4, one sentence with TEXT, within seconds
refuse() {
    text=$1
    shift
    timeout 20 "$NAMI_PROGRAM" "$@" >out 2>err </dev/null
    got=$?
    case $got in
    2 | 4) ;;
    *) echo "nami $*: status $got:"; cat err; failed=1 ;;
    esac
    if [ "$(grep -c . err)" != 1 ] || ! grep -q -- "$text" err; then
        echo "nami $*: expected one sentence with '$text':"
        cat err
        failed=1
    fi
}

cat >tokens.ini <<END
[model]
layers = 2
width = 32
heads = 2
context = 16
vocabulary = 256
[pipeline]
positions = 2
schedule = dapple
microbatches = 2
[train]
batch = 4
[run]
memory = 64
END
sed '/^layers/,/^vocabulary/d' tokens.ini >images.ini
cat >>images.ini <<END
[model]
image_height = 32
image_width = 32
image_channels = 3
classes = 10
END
G=1073741824
many="2147483648 1099511627776 4611686018427387904 9223372036854775807 9223372036854775808"

range='expected a'

# every size key of every family, far outside its range
for key in layers width heads context vocabulary; do
    for value in $many; do
        refuse "model.$key = '$value': $range" plan tokens.ini model.$key=$value
    done
done
for key in kv_heads mlp_width type_vocabulary predictions image_height image_width image_channels classes patch; do
    refuse "model.$key = '4611686018427387904': $range" plan tokens.ini model.$key=4611686018427387904
done

# and inside of it
for family in gpt llama bert; do
    refuse "$range value from 1 to 10000" plan tokens.ini model.family=$family model.layers=$G
    refuse "model.width = $G is above" plan tokens.ini model.family=$family model.width=$G
    refuse "not a multiple of model.heads = $G" plan tokens.ini model.family=$family model.heads=$G
    refuse "may use 64" plan tokens.ini model.family=$family model.context=$G
    refuse "may use 64" plan tokens.ini model.family=$family model.vocabulary=$G
    refuse "too many for any memory" plan tokens.ini model.family=$family model.context=$G model.vocabulary=$G
    refuse "parameters of family $family" plan tokens.ini model.family=$family model.width=1048576 model.vocabulary=$G
    refuse "too many for any memory" plan tokens.ini model.family=$family model.context=$G train.batch=1000000000 \
        pipeline.microbatches=1000
    refuse "may use 64" plan tokens.ini model.family=$family train.batch=300000000
done
refuse "not a multiple of model.kv_heads = $G" plan tokens.ini model.family=llama model.kv_heads=$G
refuse "model.predictions = $G is more than" plan tokens.ini model.family=bert model.predictions=$G
refuse "may use 64" plan tokens.ini model.family=bert model.type_vocabulary=$G
for family in llama bert; do
    refuse "model.mlp_width = $G is above" plan tokens.ini model.family=$family model.mlp_width=$G
done
synthetic="tokens.ini model.family=synthetic model.heads=6 model.vocabulary=0"
# shellcheck disable=SC2086
refuse "parameters of family synthetic" plan $synthetic model.width=$G
# shellcheck disable=SC2086
refuse "may use 64" plan $synthetic model.context=$G
# shellcheck disable=SC2086
refuse "may use 64" plan $synthetic synthetic.saved=$G train.batch=1000

for family in lenet mlp resnet18 resnet20 densenet121 efficientnetv2 mobilenetv2 squeezenet vit; do
    refuse "may use 64" plan images.ini model.family=$family model.classes=$G
done
chain='conv 1048576 3 pad 1, global, flatten, linear classes'
refuse "more than 1073741824 numbers" plan images.ini model.family=chain model.chain="$chain" model.image_height=4096
for layer in 'conv 8 9223372036854775807' 'conv 8 3 stride 4611686018427387904' 'conv 8 3 pad 4611686018427387904' 'conv 2147483648 3'; do
    refuse "model.chain, layer 0 ('conv'): a number from" plan images.ini model.family=chain \
        model.chain="$layer, global, flatten, linear classes"
done
refuse "more than 1073741824 numbers" plan images.ini model.family=mlp model.image_height=4096 model.image_width=4096 \
    model.image_channels=4096
refuse "tokens, which with" plan images.ini model.family=vit model.image_height=4096 model.image_width=4096 model.patch=1
refuse "model.mlp_width = $G is above" plan images.ini model.family=vit model.mlp_width=$G

# nothing changes when it is to run, or when layouts are sought
"$NAMI_PROGRAM" import text "$NAMI_SOURCE/README.md" text.h5 >import.out 2>&1 || { cat import.out; exit 1; }
run="pipeline.positions=1 data.train=text.h5 run.directory=run"
for family in gpt llama; do
    # shellcheck disable=SC2086
    refuse "too few for one sample of $G" run tokens.ini $run model.family=$family model.context=$G
    # shellcheck disable=SC2086
    refuse "position 0 .* may use 64" run tokens.ini $run model.family=$family model.vocabulary=$G
done
for size in context vocabulary; do
    refuse 'no layout fits: the smallest needs' plan tokens.ini --advise --ranks 2 model.$size=$G
done
exit $failed
