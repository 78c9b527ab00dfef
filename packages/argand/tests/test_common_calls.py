"""Lines of everyday programs: each runs, and its value prints."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import argand as torch
import argand.nn as nn
import argand.nn.functional as F
import argand.optim as optim

# One after the other in one scope, as in an interactive session; "; " and line breaks as in Python.
SESSION = r"""
torch.set_printoptions(precision=3); print(torch.tensor([1.23456,2.]))
torch.set_printoptions(precision=4)
torch.tensor(3.).item()
x=torch.randn(3,4); x.numpy().shape
torch.randn(2,3).to(torch.float64).dtype
torch.ones(2,3).sum().item()==6
torch.device("cpu")==torch.zeros(1).device
a,b=torch.max(torch.randn(3,4),dim=1); a.shape
torch.max(torch.randn(3,4),1).values.shape
F.one_hot(torch.tensor([1,2]),3).float()
torch.einsum('bij,bjk->bik',torch.ones(2,3,4),torch.ones(2,4,5)).shape
torch.bmm(torch.ones(2,3,4),torch.ones(2,4,5)).shape
torch.nn.utils.clip_grad_norm_([torch.ones(3,requires_grad=True)],1.)
x=torch.ones(3,requires_grad=True); y=(x**2).sum(); y.backward(); x.grad
x=torch.ones(3,requires_grad=True); torch.autograd.grad((x**3).sum(),x,create_graph=True)[0].sum().backward(); x.grad
with torch.no_grad(): z=x*2
z.requires_grad
with torch.inference_mode(): z=x*2
m=nn.Linear(3,4); sum(p.numel() for p in m.parameters())
copy.deepcopy(m).weight.shape
pickle.loads(pickle.dumps(torch.ones(3)))
m.state_dict().keys()
m.weight.data.fill_(0.5); m.bias.data.zero_(); m(torch.ones(1,3))
m.weight.data=torch.ones(4,3); m(torch.ones(1,3))
nn.Sequential(nn.Conv2d(1,8,3,padding=1),nn.BatchNorm2d(8),nn.ReLU(inplace=True),nn.MaxPool2d(2),nn.Flatten(),nn.Linear(8*4*4,10))(torch.randn(2,1,8,8)).shape
opt=optim.SGD(m.parameters(),lr=0.1,momentum=0.9); opt.zero_grad(); m(torch.ones(1,3)).sum().backward(); opt.step()
sch=optim.lr_scheduler.CosineAnnealingLR(opt,10); sch.step(); sch.get_last_lr()
opt.param_groups[0]["lr"]
for p in m.parameters(): p.requires_grad=False
m.requires_grad_(True)
torch.manual_seed(0)
torch.Generator().manual_seed(1)
torch.randn(2,generator=torch.Generator().manual_seed(1))
torch.randperm(5)
torch.arange(10)[torch.arange(10)%2==0]
torch.where(torch.tensor([1,0,1])>0)
torch.cat([torch.ones(2),torch.zeros(2)]).view(2,2)
torch.stack([torch.ones(2)]*3,dim=1).shape
torch.chunk(torch.arange(6),3)
torch.tensor([1,2,3]).float().mean()
torch.tensor([[1,2],[3,4]]).T
torch.tensor([1.,2.]).std()
torch.clamp(torch.tensor([-1.,2.]),0,1)
torch.tensor([1,2])==torch.tensor([1,3])
(torch.tensor([1,2])==torch.tensor([1,3])).all()
torch.allclose(torch.ones(2),torch.ones(2))
torch.full((2,2),float('inf'))
torch.isnan(torch.tensor([float('nan')])).any()
torch.nn.init.xavier_uniform_(torch.empty(3,4)).shape
torch.nn.init.kaiming_normal_(torch.empty(3,4),mode='fan_out',nonlinearity='relu').shape
torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(10)),batch_size=4)
[b[0].shape for b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(10)),batch_size=4,shuffle=True)]
nn.CrossEntropyLoss()(torch.randn(3,5),torch.tensor([1,2,3]))
nn.MultiheadAttention(8,2,batch_first=True)(torch.randn(2,3,8),torch.randn(2,3,8),torch.randn(2,3,8))[0].shape
nn.TransformerEncoder(nn.TransformerEncoderLayer(8,2,16,batch_first=True),2)(torch.randn(2,3,8)).shape
nn.Embedding(10,3,padding_idx=0)(torch.tensor([0,1])).shape
F.pad(torch.ones(2,2),(1,1,0,0))
F.normalize(torch.randn(3,4),dim=-1).shape
F.cosine_similarity(torch.randn(3,4),torch.randn(3,4)).shape
F.mse_loss(torch.ones(3),torch.zeros(3))
torch.triu(torch.ones(3,3),1).bool()
torch.masked_fill(torch.ones(3),torch.tensor([True,False,True]),0.)
torch.ones(3).masked_fill_(torch.tensor([True,False,True]),0.)
torch.cumsum(torch.arange(4),0)
torch.sort(torch.tensor([3,1,2]),descending=True).indices
torch.topk(torch.randn(10),3).values.shape
torch.bincount(torch.tensor([1,1,2]))
torch.argsort(torch.tensor([3,1,2]))
torch.nonzero(torch.tensor([1,0,1]))
torch.logical_and(torch.tensor([True]),torch.tensor([False]))
torch.diagonal(torch.ones(3,3))
torch.outer(torch.ones(2),torch.ones(3)).shape
torch.squeeze(torch.ones(1,2,1)).shape
torch.ones(2,3).permute(1,0).contiguous().view(-1)
torch.ones(2,3).size()
torch.ones(2,3).new_zeros(2)
torch.empty(2,3).normal_().shape
torch.empty(3).uniform_(-1,1).shape
torch.bernoulli(torch.full((3,),0.5)).shape
torch.rand(3)<0.5
x=torch.zeros(3); x[1]=5; x.tolist()
x=torch.zeros(3,3); x[:,1]=torch.arange(3.); x
x=torch.arange(9).view(3,3); x[[0,2]][:,[1]]
x[...,None].shape
torch.ones(2).add_(1).mul_(2)
torch.ones(2).type(torch.float64).dtype
torch.ones(2).type()
torch.ones(2).double().float().half().bfloat16().dtype
isinstance(torch.ones(2),torch.Tensor)
torch.ones(2).is_cuda
torch.cuda.is_available()
torch.get_default_dtype()
torch.set_default_dtype(torch.float64); torch.ones(2).dtype
torch.set_default_dtype(torch.float32)
torch.set_num_threads(2); torch.get_num_threads()
torch.finfo(torch.float32).max
torch.iinfo(torch.int64).min
torch.Size([1,2])+(3,)
torch.tensor(np.arange(3)).dtype
torch.from_numpy(np.arange(3.)).dtype
np.array(torch.ones(3)).sum()
np.asarray(torch.ones(3))
torch.ones(3).detach().cpu().numpy()
torch.ones(3).__array__().shape
f"{torch.tensor(1.5):.2f}"
f"{torch.tensor([1.5])}"
print(torch.arange(2000))
print(torch.randn(3,3,3).shape, torch.zeros(0))
print(nn.Sequential(nn.Linear(2,3),nn.ReLU()))
round(torch.tensor(1.567).item(),2)
int(torch.tensor(3)), float(torch.tensor(2.5)), bool(torch.tensor(True))
range(torch.tensor(3))
[i for i in torch.arange(3)]
torch.tensor(2)**3, 2**torch.tensor(3), -torch.tensor(1), ~torch.tensor(True), abs(torch.tensor(-1))
torch.tensor([1,2])@torch.tensor([3,4])
torch.ones(2,2)@torch.ones(2)
torch.tensor([5])//2, torch.tensor([5])%3, 7//torch.tensor([2]), torch.tensor([5])/2
torch.tensor([1,2,3])&1, torch.tensor([1])|2, torch.tensor([1])^3, torch.tensor([1])<<2
x=torch.ones(2,requires_grad=True); h=x.register_hook(lambda g:g*2); (x*3).sum().backward(); x.grad
x.retain_grad() if not x.is_leaf else None
class Sq(torch.autograd.Function):\n  @staticmethod\n  def forward(ctx,x): ctx.save_for_backward(x); return x*x\n  @staticmethod\n  def backward(ctx,g): x,=ctx.saved_tensors; return 2*x*g
x=torch.tensor([3.],requires_grad=True); Sq.apply(x).backward(); x.grad
torch.autograd.gradcheck(lambda x:(x**2).sum(),torch.randn(3,dtype=torch.float64,requires_grad=True))
torch.autograd.functional.jacobian(lambda x:x**2,torch.ones(2))
m=nn.Linear(2,2); m.register_forward_hook(lambda mod,i,o:o*2); m(torch.ones(1,2)).shape
nn.ModuleDict({'a':nn.Linear(1,1)})['a']
nn.ParameterList([nn.Parameter(torch.ones(2))])[0]
nn.Parameter(torch.ones(2)).requires_grad
nn.Module().training
nn.functional.dropout(torch.ones(4),0.5,training=True).shape
nn.Dropout2d(0.5)(torch.ones(1,2,3,3)).shape
nn.Softmax(dim=1)(torch.ones(1,3))
nn.Identity()(1)
nn.GELU(approximate='tanh')(torch.ones(1))
nn.BCEWithLogitsLoss()(torch.zeros(2),torch.ones(2))
nn.init.orthogonal_(torch.empty(3,3)).shape
nn.init.trunc_normal_(torch.empty(3,3),std=0.02).shape
nn.utils.parameters_to_vector(m.parameters()).shape
optim.Adam(m.parameters(),lr=1e-3,weight_decay=1e-2,betas=(0.9,0.99)).state_dict().keys()
optim.lr_scheduler.OneCycleLR(optim.SGD(m.parameters(),lr=.1),max_lr=1,total_steps=10).get_last_lr()
optim.lr_scheduler.LambdaLR(optim.SGD(m.parameters(),lr=.1),lambda e:.9**e).get_last_lr()
optim.lr_scheduler.ReduceLROnPlateau(optim.SGD(m.parameters(),lr=.1)).step(1.)
b=io.BytesIO(); torch.save(torch.ones(2),b); b.seek(0); torch.load(b)
torch.tensor([1.,2.]).equal(torch.tensor([1.,2.]))
torch.tensor([1.,float('nan')]).nan_to_num()
torch.polar(torch.ones(2),torch.zeros(2))
torch.special.expit(torch.ones(1))
torch.logsumexp(torch.ones(3),0)
torch.softmax(torch.ones(3),0)
torch.sigmoid(torch.ones(1)),torch.tanh(torch.ones(1)),torch.relu(-torch.ones(1))
torch.lerp(torch.zeros(1),torch.ones(1),0.3)
torch.addmm(torch.zeros(2,2),torch.ones(2,3),torch.ones(3,2))
torch.repeat_interleave(torch.arange(3),2)
torch.ones(2,3).repeat(2,1).shape
torch.ones(1,3).expand(4,-1).shape
torch.roll(torch.arange(4),1)
torch.flip(torch.arange(4),[0])
torch.gather(torch.arange(6).view(2,3),1,torch.tensor([[0],[1]]))
torch.zeros(2,3).scatter_(1,torch.tensor([[0],[1]]),1.)
torch.zeros(2,3).scatter_add_(1,torch.tensor([[0],[1]]),torch.ones(2,1))
torch.zeros(3).index_add_(0,torch.tensor([0,0]),torch.ones(2))
torch.index_select(torch.arange(6).view(2,3),1,torch.tensor([0]))
torch.is_tensor(1)
torch.is_grad_enabled()
torch.set_grad_enabled(True)
torch.__version__
torch.float, torch.long, torch.bool
torch.ones(2,2).norm(), torch.ones(2,2).norm(dim=1), torch.norm(torch.ones(3))
torch.tril_indices(3,3).shape
torch.meshgrid(torch.arange(2),torch.arange(3),indexing='ij')[0].shape
torch.utils.checkpoint.checkpoint(lambda x:x*2,torch.ones(2,requires_grad=True),use_reentrant=False)
torch.ones(2,3).to(memory_format=torch.contiguous_format).shape
torch.argmax(torch.tensor([1,3,2])), torch.tensor([1,3]).argmax(dim=0,keepdim=True)
torch.sum(torch.ones(2,3),dim=(0,1)), torch.prod(torch.ones(3)), torch.amax(torch.ones(2,3),1)
torch.erf(torch.ones(1)), torch.rsqrt(torch.ones(1)), torch.log1p(torch.ones(1)), torch.expm1(torch.ones(1))
torch.masked_select(torch.arange(3),torch.tensor([True,False,True]))
torch.floor_divide(torch.tensor([5]),2), torch.true_divide(torch.tensor([5]),2), torch.fmod(torch.tensor([5]),2)
torch.count_nonzero(torch.tensor([1,0])), torch.any(torch.tensor([True])), torch.all(torch.tensor([True]))
torch.nn.functional.scaled_dot_product_attention(torch.randn(1,2,3,4),torch.randn(1,2,3,4),torch.randn(1,2,3,4)).shape
torch.random.manual_seed(1), torch.initial_seed(), torch.get_rng_state().shape
torch.testing.assert_close(torch.ones(2),torch.ones(2))
torch.movedim(torch.ones(2,3),0,1).shape
torch.ones(4).unflatten(0,(2,2)).shape
torch.clone(torch.ones(2)), torch.ones(2).clone().detach().requires_grad_(True)
torch.empty_like(torch.ones(2)), torch.zeros_like(torch.ones(2)), torch.rand_like(torch.ones(2)), torch.randn_like(torch.ones(2))
torch.autograd.set_detect_anomaly(False)
"""


def run_line(line, scope):
    try:
        code = compile(line, line, "eval")
    except SyntaxError:
        exec(line, scope)
    else:
        assert repr(eval(code, scope))


def test_session(capsys):
    scope = {
        "torch": torch,
        "nn": nn,
        "F": F,
        "optim": optim,
        "np": np,
        "copy": copy,
        "pickle": pickle,
        "io": io,
    }
    failures = []
    threads = torch.get_num_threads()
    try:
        for line in SESSION.strip().split("\n"):
            try:
                run_line(line.replace("\\n", "\n"), scope)
            except Exception as error:
                failures.append(f"{line}: {type(error).__name__}: {error}")
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)
        torch.set_printoptions(precision=4)
    if failures:
        pytest.fail("\n".join(failures))
    assert "tensor([1.235, 2.000])" in capsys.readouterr().out
